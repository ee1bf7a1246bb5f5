"""One bar: parts side by side, drawn to a scale, and what they stand for."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from aliquot.cli.show.grid import least

_SHORTEST, _LONGEST = 8, 32

Part = tuple[str, str, str]
"""The sign of a part, its style, and what it stands for; empty words keep it out of the legend."""


def bar(ends: Iterable[int], parts: Iterable[Part], scale: int, length: int) -> Text:
    """The parts up to where each of them ends; a full bar of this length stands for `scale`."""
    drawn, at = Text(), 0
    for end, (sign, style, _) in zip(ends, parts, strict=True):
        cells = round(end * length / scale)
        drawn.append(sign * (cells - at), style=style)
        at = max(cells, at)
    return drawn


def room(width: int, rows: Sequence[Sequence[str]], remarks: Iterable[Text]) -> int:
    """How long a bar can be that stands between these words, headings first, and remarks."""
    words = sum(
        max(least(column[0], width), *(len(cell) for cell in column)) + 2
        for column in zip(*rows, strict=True)
    )
    words += max((len(remark) for remark in remarks), default=0)
    return min(max(width - words - 6, _SHORTEST), _LONGEST)


def legend(parts: Iterable[Part]) -> Text:
    """What the signs mean."""
    return Text("   ").join(
        Text(f"{sign} {words}", style=style) for sign, style, words in parts if words
    )
