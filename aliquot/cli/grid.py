"""The one way a table looks on a terminal: no box, dim headings, words that fold."""

from rich.table import Table

_WRAPPING = ("why", "quota", "pod", "pods")


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table of these columns; those in `right` hold numbers."""
    made = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column not in _WRAPPING,
            overflow="fold" if column in _WRAPPING else "ellipsis",
        )
    return made
