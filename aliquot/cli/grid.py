"""The one way a table looks on a terminal: no box, dim headings, words that fold."""

from rich.table import Table

_WRAPPING = ("why", "quota", "resource", "pod", "pods")
_NARROW = 110
_NARROWEST = {"quota": 16, "pod": 16, "pods": 16, "resource": 8}
"""How far words may be folded where the terminal is narrow."""


def table(width: int, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table of these columns on a console of this width; those in `right` hold numbers."""
    made = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column not in _WRAPPING,
            overflow="fold" if column in _WRAPPING else "ellipsis",
            min_width=_NARROWEST.get(column) if width < _NARROW else None,
        )
    return made
