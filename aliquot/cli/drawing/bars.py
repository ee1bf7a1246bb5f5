"""Bars beside numbers: a row for each figure, drawn to scale, and a legend of the signs in use.

Where the console has no room for a bar beside its numbers, each row is two lines: the numbers with
their headings, then the bar and the remark. So no number is cut, however narrow the console.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.grid import INDENT, Cell, drawn, fitting, indented, packed

Segment = tuple[str, str, str]
"""A segment of a bar: its character, its style, and its entry in the legend."""

_SHORTEST_BAR, _LONGEST_BAR = 8, 32
"""Characters of a bar: 8 still show eighths of a quota; 32 keep its remark near its numbers on a
wide console."""
_GAP, _LEGEND_GAP = 2, 3
_DEEPEST_INDENT = 16
"""Levels that are indented: beyond, names would leave no room for the numbers."""
_NAMES = ("quota", "queue", "gang", "resource", "figure", "phase")
"""Columns of names; all others hold numbers."""


class BarRow(NamedTuple):
    """The cells of a row, its bar up to `ends`, of which `scale` is a full one, and a remark."""

    cells: tuple[Cell, ...]
    segments: tuple[Segment, ...]
    ends: tuple[int, ...]
    scale: int
    remark: Text
    style: str = "bold"
    """Of the first cell, the name."""


def depth_first(parents: Mapping[str, str | None]) -> Iterator[tuple[str, int]]:
    """Each name after its parent, with its depth to indent; parents that are not here are the top.

    Without recursion: trees may be very deep.
    """
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(name)
    rest = [(name, 0) for name in reversed(children.get(None, []))]
    while rest:
        name, depth = rest.pop()
        yield name, min(depth, _DEEPEST_INDENT)
        rest += [(each, depth + 1) for each in reversed(children.get(name, []))]


def bar(ends: Iterable[int], segments: Iterable[Segment], scale: int, length: int) -> Text:
    """The segments, each up to its end; a bar of the full length stands for `scale`."""
    made, at = Text(), 0
    for end, (sign, style, _) in zip(ends, segments, strict=True):
        cells = round(end * length / scale)
        made.append(sign * (cells - at), style=style)
        at = max(cells, at)
    return made


def bar_table(
    width: int,
    headings: Sequence[str],
    rows: Sequence[BarRow],
    more: Iterable[Text] = (),
    longest: int = _LONGEST_BAR,
) -> Iterator[RenderableType]:
    """The table on a console of this width, more lines below it, and the legend."""
    remarked = ["remark"] if any(row.remark for row in rows) else []
    columns = [*headings, *remarked]
    cells = [[*row.cells, row.remark][: len(columns)] for row in rows]
    room = width - INDENT - _GAP - _SHORTEST_BAR
    widths = fitting(room, columns, cells, {"remark": _longest_part(rows)})
    length = width - 2 * INDENT if widths is None else room - _between(widths) + _SHORTEST_BAR
    bars = [bar(row.ends, row.segments, row.scale, max(min(length, longest), 1)) for row in rows]
    if widths is None:
        yield indented(Group(*_paragraphs(width, headings, rows, bars)))
    else:
        yield indented(_table(headings, rows, bars, widths))
    yield from (indented(each) for each in more)
    yield from (indented(each) for each in legend(width - INDENT, rows, bars))


def _longest_part(rows: Iterable[BarRow]) -> int:
    """The longest part of a remark: it is wrapped after commas only."""
    return max((len(part) + 1 for row in rows for part in row.remark.plain.split(", ")), default=0)


def _broken(remark: Text, width: int = 0) -> Text:
    """The remark with a line for each part, unless it fits this width."""
    return remark if len(remark) <= width else Text(",\n").join(remark.split(", "))


def _between(widths: Sequence[int]) -> int:
    """What these columns take, with the gaps between them."""
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(
    headings: Sequence[str], rows: Sequence[BarRow], bars: Sequence[Text], widths: Sequence[int]
) -> RenderableType:
    """A line or more a row: the cells, the bar, the remark."""
    names, remarks = len(headings), widths[len(headings) :]
    cells = [
        [
            Text(str(row.cells[0]), style=row.style),
            *row.cells[1:],
            shown,
            _broken(row.remark, *remarks),
        ]
        for row, shown in zip(rows, bars, strict=True)
    ]
    sizes = [*widths[:names], max(map(len, bars), default=0), *remarks]
    columns = [*headings, "bar", *("" for _ in remarks)]
    numbers = tuple(each for each in headings if each not in _NAMES)
    return drawn(columns, [row[: len(columns)] for row in cells], sizes, numbers)


def _paragraphs(
    width: int, headings: Sequence[str], rows: Sequence[BarRow], bars: Sequence[Text]
) -> Iterator[RenderableType]:
    """Two lines or more a row: its name, its numbers with their headings; its bar and remark."""
    depth = INDENT
    for row, shown in zip(rows, bars, strict=True):
        name, cells = str(row.cells[0]), row.cells[1:]
        if name:
            depth = len(name) - len(name.lstrip()) + INDENT
            yield Text(name, style=row.style, overflow="fold")
        pairs = (
            Text.assemble((f"{heading} " if heading not in _NAMES else "", "bright_black"), cell)
            for heading, cell in zip(headings[1:], cells, strict=True)
            if cell
        )
        for line in packed(width - INDENT - depth, pairs, _GAP):
            yield indented(line, depth)
        parts = [part for part in (shown, row.remark) if part]
        for line in packed(width - INDENT - depth, parts, _GAP):
            yield indented(line, depth)


def legend(width: int, rows: Iterable[BarRow], bars: Iterable[Text]) -> Iterator[Text]:
    """What the signs mean that these bars use, on lines of this width."""
    used = {sign for each in bars for sign in each.plain}
    segments = dict.fromkeys(segment for row in rows for segment in row.segments)
    entries = (
        Text(f"{sign} {words}", style=style) for sign, style, words in segments if sign in used
    )
    return packed(width, entries, _LEGEND_GAP)
