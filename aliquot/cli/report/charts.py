"""Charts as inline SVG: only shapes are in the SVG, which stretches; labels are text beside it.

So lines and text keep their size on a phone as on a wide screen, and a chart is read without
scripts. Each part of time is drawn as a step, because that is what its figure is: a mean.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from aliquot.cli.report import axes
from aliquot.cli.report.axes import Tick
from aliquot.cli.report.markup import Html, empty, joined, tag

MOST_COLOURS = 8
"""More cannot be told apart; what is beyond is put together."""
_OTHERS = "var(--other)"
_LEVELS = 10
"""Shades of a heat map."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of parts of time, under a name; None where there is nothing to say."""

    name: str
    values: Sequence[float | None]
    colour: str = ""
    kind: str | None = None
    """`limit`: a dashed line, of what there is."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the axes say: until when, the unit of amounts, and of which kind they are."""

    end: float
    unit: str
    percent: bool = False
    whole: bool = False


def colour(place: int) -> str:
    """The colour of the series at this place."""
    return f"var(--c{place})" if place < MOST_COLOURS else _OTHERS


def largest(*named: dict[str, Sequence[float]]) -> dict[str, str]:
    """The names that get colours of their own in all charts: by the sum of the first, then others.

    Each keeps its colour from chart to chart.
    """
    names = dict.fromkeys(name for each in named for name in each)
    sums = {name: [-sum(each.get(name, ())) for each in named] for name in names}
    order = sorted(names, key=lambda name: sums[name])[:MOST_COLOURS]
    return {name: colour(order.index(name)) for name in names if name in order}


def coloured(named: dict[str, Sequence[float]], colours: dict[str, str]) -> list[Series]:
    """Each as a series of its own colour, and those without one put together."""
    found = [Series(name, named[name], colours[name]) for name in colours if name in named]
    rest = [values for name, values in named.items() if name not in colours]
    if rest:
        sums = [sum(row) for row in zip(*rest, strict=True)]
        found.append(Series(f"{len(rest)} others", sums, _OTHERS))
    return found


def areas(series: Sequence[Series], scale: Scale, above: Series | None = None) -> Html:
    """Amounts stacked over each other; `above` is a line for what there is in all."""
    sums: list[float] = [0.0] * len(series[0].values) if series else []
    bands: list[tuple[Series, list[float], list[float]]] = []
    for each in series:
        below, sums = sums, [a + (b or 0.0) for a, b in zip(sums, each.values, strict=True)]
        bands.append((each, below, sums))
    most = max([*sums, *(each or 0.0 for each in (above.values if above else ()))], default=0.0)
    top, ticks = axes.amounts(most, scale.percent, scale.whole)
    shapes = [
        tag(
            "path",
            tag("title", each.name),
            d=_band(below, level, top),
            style=f"fill:{each.colour}",
        )
        for each, below, level in bands
        if any(each.values)
    ]
    if above is not None:
        shapes.append(_line(above, top, "limit"))
    legend = [each for each in series if any(each.values)] + ([above] if above else [])
    return _plot(shapes, len(sums), ticks, scale, legend)


def lines(series: Sequence[Series], scale: Scale) -> Html:
    """Lines over each other's ground."""
    most = max((v for each in series for v in each.values if v is not None), default=0.0)
    top, ticks = axes.amounts(most, scale.percent, scale.whole)
    shapes = [_line(each, top) for each in series]
    parts = len(series[0].values) if series else 0
    return _plot(shapes, parts, ticks, scale, series if len(series) > 1 else ())


def _plot(
    shapes: Iterable[Html],
    parts: int,
    ticks: Sequence[Tick],
    scale: Scale,
    legend: Sequence[Series],
) -> Html:
    grid = [
        empty("line", x1=0, x2=parts, y1=_y(each.at, 1), y2=_y(each.at, 1), class_="grid")
        for each in ticks
    ]
    drawing = tag(
        "svg", joined(grid), joined(shapes), viewBox=f"0 0 {parts} 100", preserveAspectRatio="none"
    )
    left = [tag("span", each.label, style=f"bottom:{_percent(each.at)}") for each in ticks]
    below = [
        tag("span", each.label, style=f"left:{_percent(each.at)}", class_=_edge(each.at))
        for each in axes.times(scale.end)
    ]
    return joined(
        tag("p", scale.unit, class_="unit"),
        tag(
            "div",
            tag("div", left, class_="y", aria_hidden="true"),
            tag("div", drawing, class_="ground"),
            tag("div", below, class_="x", aria_hidden="true"),
            class_="plot",
        ),
        tag("p", "time since the start", class_="unit below"),
        _legend(legend),
    )


def _legend(series: Sequence[Series]) -> Html | None:
    if not series:
        return None
    items = [
        tag("li", tag("i", style=f"background:{each.colour}", class_=each.kind), each.name)
        for each in series
    ]
    return tag("ul", items, class_="legend")


def _edge(at: float) -> str | None:
    """A label at an end must not reach beyond the chart."""
    return "first" if at < 0.02 else "last" if at > 0.96 else None


def _band(below: Sequence[float], level: Sequence[float], top: float) -> str:
    """The outline between two steps, there above and back below."""
    over = _steps([_y(value, top) for value in level])
    under = _steps([_y(value, top) for value in below])
    back = " ".join(f"H{right} V{y}" for y, right in _backwards(under))
    path = " ".join(f"V{y} H{right}" for y, _, right in over)
    return " ".join(filter(None, (f"M0 {under[0][0]}", path, f"V{under[-1][0]}", back, "Z")))


def _backwards(steps: Sequence[tuple[str, int, int]]) -> Iterable[tuple[str, int]]:
    """From right to left: how far each step goes to the left, and the height of the next."""
    for place in range(len(steps) - 1, 0, -1):
        yield steps[place - 1][0], steps[place][1]


def _steps(heights: Sequence[str]) -> list[tuple[str, int, int]]:
    """Heights with where each begins and ends; neighbours that are the same are one."""
    found, at = [], 0
    for height, run in groupby(heights):
        length = len(list(run))
        found.append((height, at, at + length))
        at += length
    return found


def _line(series: Series, top: float, class_: str = "line") -> Html:
    """A line in steps, with gaps where there is no value."""
    path, pen_up = [], True
    for height, since, until in _steps(
        ["" if value is None else _y(value, top) for value in series.values]
    ):
        if height:
            path.append(f"M{since} {height} H{until}" if pen_up else f"V{height} H{until}")
        pen_up = not height
    return tag(
        "path",
        tag("title", series.name),
        d=" ".join(path),
        class_=class_,
        style=f"stroke:{series.colour}" if series.colour else None,
    )


def _y(value: float, top: float) -> str:
    return f"{round(100 - 100 * value / top, 2):g}" if top else "100"


def _percent(part: float) -> str:
    return f"{round(100 * part, 2):g}%"


def bar(*spans: tuple[float, str], mark: float | None = None) -> Html:
    """A bar of one row: spans from 0, the longest first, with their class; and a mark on it."""
    found = [tag("i", class_=word, style=f"width:{_percent(part)}") for part, word in spans]
    if mark is not None:
        found.append(tag("b", style=f"left:{_percent(min(mark, 1.0))}"))
    return tag("div", found, class_="bar", aria_hidden="true")


def bars(parts: Sequence[float]) -> Html:
    """A bar for each side of one row, below each other."""
    found = [
        tag("i", style=f"width:{_percent(part)};background:{colour(place)}")
        for place, part in enumerate(parts)
    ]
    return tag("div", found, class_="bars", aria_hidden="true")


def heat(rows: dict[str, Sequence[float | None]], end: float) -> Html:
    """A row for each name, darker where its values are higher, empty where there are none."""
    parts = max(map(len, rows.values()), default=0)
    found = [
        tag(
            "div",
            tag("span", name, class_="name"),
            tag(
                "svg",
                _cells(values),
                viewBox=f"0 0 {parts} 1",
                preserveAspectRatio="none",
                role="img",
                aria_label=name,
            ),
            class_="row",
        )
        for name, values in rows.items()
    ]
    below = [
        tag("span", each.label, style=f"left:{_percent(each.at)}", class_=_edge(each.at))
        for each in axes.times(end)
    ]
    axis = tag("div", tag("span", class_="name"), tag("div", below, class_="x"), class_="row")
    shades = [
        tag("li", tag("i", class_="shade", style=f"opacity:{level}"), label)
        for level, label in ((0.06, "idle"), (0.5, "half used"), (1, "full"))
    ]
    return joined(tag("div", found, axis, class_="heat"), tag("ul", shades, class_="legend"))


def _cells(values: Sequence[float | None]) -> list[Html]:
    """A rectangle for each run of values that look the same."""
    levels = [None if value is None else min(_LEVELS, round(value * _LEVELS)) for value in values]
    found, at = [], 0
    for level, run in groupby(levels):
        length = len(list(run))
        if level is not None:
            shade = max(level / _LEVELS, 0.06)
            found.append(empty("rect", x=at, y=0, width=length, height=1, opacity=f"{shade:g}"))
        at += length
    return found
