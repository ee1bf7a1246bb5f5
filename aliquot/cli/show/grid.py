"""The one look of tables and bars on a terminal: no box, dim headings, names that wrap.

Every table of a simulation, of the live view and of the quotas is made here, so that columns of the
same name are equally wide and bars are drawn to scale in the same way.
"""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

MOST_ROWS = 24
"""Rows of a list before the rest is only counted: as many as the lines of the smallest common
terminal, so that no list alone fills more than one window."""

Segment = tuple[str, str, str]
"""A segment of a bar: its character, its style, and its entry in the legend (empty: no entry)."""

_WRAPPING = ("why", "quota", "queue", "gang", "resource", "figure", "pod", "pods")
_NARROW = 110
"""Below this width of the console, columns of names have a least width, so that bars and remarks do
not squeeze them. Chosen by eye: from here on, the tables of examples/ fit without wrapping."""
_MIN_WIDTH = {
    **dict.fromkeys(("quota", "queue", "gang", "pod", "pods"), 16),
    **dict.fromkeys(("resource", "figure"), 8),
}
"""How far names may be wrapped on a narrow console: `nvidia.com/gpu` takes two lines at 8, a
`namespace/pod` of 32 characters two lines at 16."""
_SHORTEST_BAR, _LONGEST_BAR = 8, 32
"""Characters of a bar: 8 still show eighths of a quota; 32 keep its remark near its numbers on a
wide console."""
NARROWEST_WITH_BARS = 72
"""A console narrower than this has no room for bars beside the cells and remarks of a queue or of a
quota on GPUs."""
_BAR_MARGIN = 6
"""What a row takes beside its words and its bar: the indent and the padding of both columns."""


def table(width: int, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table of these columns on a console of this width; those in `right` hold numbers."""
    made = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column not in _WRAPPING,
            overflow="fold" if column in _WRAPPING else "ellipsis",
            min_width=_min_width(column, width) or None,
        )
    return made


def indented(part: RenderableType) -> RenderableType:
    """Indented below its title."""
    return Padding(part, (0, 0, 0, 2))


def omitted(rows: int) -> list[Text]:
    """The line that counts the rows left out, if there are any."""
    words = f"... and {rows} more; -o json has them all"
    return [Text(words, style="bright_black")] if rows > 0 else []


def bar(ends: Iterable[int], segments: Iterable[Segment], scale: int, length: int) -> Text:
    """The segments, each up to its end; a bar of the full length stands for `scale`."""
    drawn, at = Text(), 0
    for end, (sign, style, _) in zip(ends, segments, strict=True):
        cells = round(end * length / scale)
        drawn.append(sign * (cells - at), style=style)
        at = max(cells, at)
    return drawn


def bar_length(width: int, rows: Sequence[Sequence[str]], remarks: Iterable[Text]) -> int:
    """How long bars can be on this console between these cells, headings first, and remarks."""
    words = sum(
        max(_min_width(column[0], width), *(len(cell) for cell in column)) + 2
        for column in zip(*rows, strict=True)
    )
    words += max((len(remark) for remark in remarks), default=0)
    return min(max(width - words - _BAR_MARGIN, _SHORTEST_BAR), _LONGEST_BAR)


def legend(segments: Iterable[Segment]) -> Text:
    """What the characters of a bar mean."""
    return Text("   ").join(
        Text(f"{sign} {words}", style=style) for sign, style, words in segments if words
    )


def _min_width(column: str, width: int) -> int:
    """How narrow a column may become on a console of this width; 0 for no bound."""
    return _MIN_WIDTH.get(column, 0) if width < _NARROW else 0
