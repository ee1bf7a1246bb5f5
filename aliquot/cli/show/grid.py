"""The one way a table looks on a terminal: no box, dim headings, words that fold."""

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_WRAPPING = ("why", "quota", "queue", "gang", "resource", "figure", "pod", "pods")
_NARROW = 110
MOST_ROWS = 24
"""Who wants to see more asks for another output."""
_NARROWEST = {
    **dict.fromkeys(("quota", "queue", "gang", "pod", "pods"), 16),
    **dict.fromkeys(("resource", "figure"), 8),
}
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
            min_width=least(column, width) or None,
        )
    return made


def least(column: str, width: int) -> int:
    """How wide a column is in any case, on a console of this width."""
    return _NARROWEST.get(column, 0) if width < _NARROW else 0


def indented(part: RenderableType) -> RenderableType:
    """Set in below its title."""
    return Padding(part, (0, 0, 0, 2))


def more(rows: int) -> list[Text]:
    """What is said of rows that are left out, if there are any."""
    words = f"... and {rows} more; -o json has them all"
    return [Text(words, style="bright_black")] if rows > 0 else []
