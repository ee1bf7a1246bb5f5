"""The report of several sides of the same input: policies, configurations, before and after."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.cli.report import charts, words
from aliquot.cli.report.charts import Scale, Series
from aliquot.cli.report.markup import Html
from aliquot.cli.report.page import Cell, key, page, section, table
from aliquot.questions.plays.comparison import Play, measured
from aliquot.questions.plays.course import course, main_resource

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """The sides: their names, figures, and courses up to the end of the longest."""

    names: list[str]
    figures: list[Result]
    courses: list[Result]
    resource: str | None

    @property
    def end(self) -> float:
        """When all are over."""
        end: float = self.courses[0]["end"]
        return end


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table: its name, its value of a side, how it reads, and what is better."""

    name: str
    value: Callable[[Result], float]
    shown: Callable[[float], str]
    better: int = 0
    """-1: less is better, 1: more is, 0: neither."""


def compared(names: Sequence[str], plays: Sequence[Play]) -> Compared:
    """The sides, measured and drawn over the same time."""
    resource, end = main_resource(plays), max(each.end for each in plays)
    figures = [measured(each) for each in plays]
    return Compared(list(names), figures, [course(each, resource, end) for each in plays], resource)


def report(names: Sequence[str], plays: Sequence[Play], source: str) -> str:
    """The whole file; `source` says what was compared on."""
    sides = compared(names, plays)
    return page(
        f"{' and '.join(names)} compared on {source}",
        verdict(sides),
        summary(sides),
        *over_time(sides),
        waits(sides) if sides.end else None,
        fairness(sides),
        evictions(sides),
        about="aliquot compare -o json has more figures.",
    )


def verdict(sides: Compared) -> str:
    """One line: who is first in what users feel and in what it costs."""
    some = []
    for figure, words_ in (
        (_MEAN_WAIT, "Shortest mean wait"),
        (_FAIRNESS, "fairest"),
        (_EVICTIONS, "fewest evictions"),
    ):
        best = _best(figure, sides.figures)
        if best is None:
            some.append(f"{words_}: no difference")
            continue
        first = [name for name, is_best in zip(sides.names, best, strict=True) if is_best]
        values = {figure.value(each) for each in sides.figures}
        least, most = (figure.shown(each) for each in (min(values), max(values)))
        good, bad = (least, most) if figure.better < 0 else (most, least)
        other = f", not {bad}" if len(sides.names) == 2 else f"; at worst {bad}"
        some.append(f"{words_}: {' and '.join(first)} ({good}{other})")
    return "; ".join(some) + "."


_MEAN_WAIT = Figure("mean wait", lambda each: float(each["waits"]["mean"]), words.span, -1)
_FAIRNESS = Figure("fairness (Jain)", lambda each: float(each["fairness"]), "{:.3f}".format, 1)
_EVICTIONS = Figure("evictions", lambda each: float(each["evictions"]), "{:,.0f}".format, -1)


def _rows(resource: str | None, timeless: bool) -> list[Figure]:
    """The rows; those about time only if any passes."""
    unit = words.hours(resource)
    waiting = Figure("pods that wait", lambda each: each["pods"]["waiting"], "{:,.0f}".format, -1)
    if timeless:
        in_use = f"{words.resource(resource)} in use at the end"
        used = Figure(in_use, lambda each: float(each["usedAtEnd"]), words.percent, 1)
        return [used, waiting, _EVICTIONS]
    return [
        Figure(
            f"{words.resource(resource)} in use",
            lambda each: float(each["utilisation"].get(resource, 0.0)),
            words.percent,
            1,
        ),
        Figure("pods started", lambda each: float(each["pods"]["started"]), "{:,.0f}".format),
        waiting,
        _MEAN_WAIT,
        Figure("9 in 10 waited under", lambda each: float(each["waits"]["p90"]), words.span, -1),
        Figure("longest wait", lambda each: float(each["waits"]["max"]), words.span, -1),
        _FAIRNESS,
        _EVICTIONS,
        Figure(
            f"{unit} lost",
            lambda each: float(each["lostWork"].get(resource, 0.0)),
            words.amount,
            -1,
        ),
        Figure("over after", lambda each: float(each["makespan"]), words.span, -1),
    ]


def _best(figure: Figure, sides: Sequence[Result]) -> list[bool] | None:
    """Which sides are best, by what is shown; None if they do not differ."""
    values = [figure.value(each) for each in sides]
    shown = [figure.shown(each) for each in values]
    if not figure.better or len(set(shown)) == 1:
        return None
    first = shown[values.index(max(values) if figure.better > 0 else min(values))]
    return [each == first for each in shown]


def summary(sides: Compared, title: str = "Side by side") -> Html:
    """All figures, the best of each row marked."""
    rows: list[list[Html | Cell | str]] = []
    figures = [
        {**each, "usedAtEnd": found["usedAtEnd"]}
        for each, found in zip(sides.figures, sides.courses, strict=True)
    ]
    for figure in _rows(sides.resource, not sides.end):
        best = _best(figure, figures) or [False] * len(sides.names)
        cells = [
            Cell(figure.shown(figure.value(each)), figure.value(each), is_best)
            for each, is_best in zip(figures, best, strict=True)
        ]
        rows.append([figure.name, *cells])
    return section(title, "", table("figures", ("", *sides.names), rows))


def over_time(sides: Compared) -> list[Html]:
    """What was used and who waited over time, a line for each side."""
    if not sides.end:
        return [section("Over time", "No time passes here: everything happens at once.")]
    resource = words.resource(sides.resource)
    parts = [
        [
            taken / has if has else None
            for taken, has in zip(_sums(each, "used"), each["capacity"], strict=True)
        ]
        for each in sides.courses
    ]
    waiting = [_sums(each, "waiting") for each in sides.courses]
    whole = Scale(sides.end, "pods", whole=True)
    return [
        section(
            f"{resource} in use",
            "The part of what all nodes have.",
            charts.lines(_series(sides, parts), Scale(sides.end, f"part of {resource}", True)),
        ),
        section("Waiting pods", "", charts.lines(_series(sides, waiting), whole)),
    ]


def _sums(found: Result, word: str) -> list[float]:
    """Of all teams, or for all reasons."""
    nothing = [0.0] * len(found["capacity"])
    return [sum(row) for row in zip(nothing, *found[word].values(), strict=True)]


def _series(sides: Compared, values: Sequence[Sequence[float | None]]) -> list[Series]:
    return [
        Series(name, each, charts.colour(place))
        for place, (name, each) in enumerate(zip(sides.names, values, strict=True))
    ]


def waits(sides: Compared) -> Html:
    """The mean waits by team and by size, a bar for each side."""
    items = tuple((f"side-{place}", name) for place, name in enumerate(sides.names))
    return section(
        "How long pods waited",
        "The mean. Pods that still wait count with what they have waited by the end.",
        key(*items),
        _waits(sides, "team", "teams"),
        _waits(sides, "size", "sizes"),
    )


def _waits(sides: Compared, word: str, group: str) -> Html:
    names = list(dict.fromkeys(name for each in sides.figures for name in each[group]))
    found = {
        name: [float(each[group].get(name, {}).get("mean", 0.0)) for each in sides.figures]
        for name in names
    }
    most = max((value for values in found.values() for value in values), default=0.0) or 1.0
    rows: list[list[Html | Cell | str]] = [
        [
            words.amounts(name) if word == "size" else name,
            charts.bars([value / most for value in values]),
            *(Cell(words.span(value), value) for value in values),
        ]
        for name, values in sorted(found.items(), key=lambda each: (-max(each[1]), each[0]))
    ]
    return table(f"waits by {word}", (word, "", *sides.names), rows)


def fairness(sides: Compared) -> Html | None:
    """How even it was over time."""
    if not sides.end or max(len(each["teams"]) for each in sides.figures) < 2:
        return None
    series = _series(sides, [each["fairness"] for each in sides.courses])
    text = "1 if all teams ran for the same part of the time that their pods were there."
    return section("Fairness", text, charts.lines(series, Scale(sides.end, "Jain's index")))


def evictions(sides: Compared) -> Html | None:
    """Evictions and lost work, added up over time."""
    if not any(each["evictions"] for each in sides.figures) or not sides.end:
        return None
    number = [_added_up(_sums(each, "evictions")) for each in sides.courses]
    lost = [_added_up(each["lost"]) for each in sides.courses]
    unit = words.hours(sides.resource)
    parts = [charts.lines(_series(sides, number), Scale(sides.end, "evicted pods", whole=True))]
    if any(each and each[-1] for each in lost):
        parts.append(charts.lines(_series(sides, lost), Scale(sides.end, f"{unit} lost")))
    return section("Evictions, added up", "", *parts)


def _added_up(values: Sequence[float]) -> list[float]:
    sums, whole = [], 0.0
    for each in values:
        whole += each
        sums.append(round(whole, 6))
    return sums
