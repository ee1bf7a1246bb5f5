"""The report of one simulation: who used what, who waited, how even it was, what was lost."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from aliquot.cli.report import charts, words
from aliquot.cli.report.charts import Scale, Series
from aliquot.cli.report.markup import Html
from aliquot.cli.report.page import Cell, Tile, key, page, section, table, tiles
from aliquot.questions.plays.comparison import Play, measured
from aliquot.questions.plays.course import course, main_resource
from aliquot.simulation.outcome import outcome

Result = dict[str, Any]
_MOST_NODES = 40
"""Rows of the heat map: what fits a screen; of more nodes, neighbours are put together."""
_EVEN, _UNEVEN = 0.95, 0.8
"""From which of Jain's indexes on teams fared alike, or at least not far apart."""


def report(play: Play, source: str) -> str:
    """The whole file; `source` says what was simulated."""
    figures, ended = measured(play), outcome(play.simulation)
    resource = main_resource([play])
    found = course(play, resource)
    title = f"Simulation of {source}, policy {figures['policy']}"
    about = (
        "Of each part of time the charts show the mean. aliquot simulate -o json has every event."
    )
    return page(
        title,
        verdict(figures, found),
        tiles(overview(figures, found)),
        *_over_time(found),
        waits(figures) if found["end"] else None,
        fairness(figures, found),
        evictions(figures, found),
        nodes(found),
        pending(ended["pending"]),
        about=about,
    )


def verdict(figures: Result, found: Result) -> str:
    """One line that says how it went."""
    pods, said, resource = figures["pods"], figures["waits"], found["resource"]
    waiting = pods["waiting"]
    verb = "waits" if waiting == 1 else "wait"
    left = f"{waiting:,} of {pods['all']:,} pods still {verb}."
    some = [left if waiting else "Every pod started."]
    if resource is not None:
        tense = "were" if found["end"] else "are"
        used = words.percent(_in_use(figures, found)).capitalize()
        some.append(f"{used} of the {words.resource(resource)} {tense} in use.")
    if said["max"]:
        some.append(f"A pod waited {words.span(said['mean'])} on average.")
    if figures["evictions"]:
        lost = figures["lostWork"].get(resource, 0.0)
        cost = f" cost {words.amount(lost)} {words.hours(resource)}" if lost else " cost nothing"
        some.append(f"{words.number(figures['evictions'], 'eviction')}{cost}.")
    else:
        some.append("Nothing was evicted.")
    return " ".join(some)


def _in_use(figures: Result, found: Result) -> float:
    """The part of the resource that was in use: over time, or at the end if no time passes."""
    over_time: float = figures["utilisation"].get(found["resource"], 0.0)
    at_end: float = found["usedAtEnd"]
    return over_time if found["end"] else at_end


def overview(figures: Result, found: Result) -> list[Tile]:
    """The figures that matter most; those of time only if any passes."""
    pods, said, resource = figures["pods"], figures["waits"], found["resource"]
    used = _in_use(figures, found)
    lost = figures["lostWork"].get(resource, 0.0)
    when = "mean over time" if found["end"] else "at the end"
    first = [
        Tile(f"{words.resource(resource)} in use", words.percent(used), used, when),
        Tile("Pods started", f"{pods['started']:,}", pods["started"], f"of {pods['all']:,}"),
    ]
    evicted = Tile("Evictions", f"{figures['evictions']:,}", figures["evictions"])
    if not found["end"]:
        return [*first, evicted]
    return [
        *first,
        Tile("Mean wait", words.span(said["mean"]), said["mean"]),
        Tile("9 in 10 waited under", words.span(said["p90"]), said["p90"]),
        Tile("Longest wait", words.span(said["max"]), said["max"]),
        Tile("Fairness", words.index(figures["fairness"]), figures["fairness"], _evenness(figures)),
        evicted,
        Tile("Lost to evictions", words.amount(lost), lost, words.hours(resource)),
        Tile("Over after", words.span(figures["makespan"]), figures["makespan"]),
    ]


def _evenness(figures: Result) -> str:
    if len(figures["teams"]) < 2:
        return "one team only"
    value = figures["fairness"]
    return "even" if value >= _EVEN else "somewhat uneven" if value >= _UNEVEN else "uneven"


def _over_time(found: Result) -> list[Html]:
    """What was used, and who waited, over time."""
    if not found["end"]:
        words_ = "No time passes in this simulation: everything happens at once."
        return [section("Over time", words_)]
    resource = words.resource(found["resource"])
    scale, pods = Scale(found["end"], resource), Scale(found["end"], "pods", whole=True)
    there = Series("all that nodes have", found["capacity"], "var(--limit)", "limit")
    colours = charts.largest(found["used"], found["waiting"])
    return [
        section(
            f"{resource} in use, by team",
            "The dashed line is what all nodes have. The space below it is idle.",
            charts.areas(charts.coloured(found["used"], colours), scale, there),
        ),
        section(
            "Waiting pods, by team",
            "Pods that had come and did not run yet.",
            charts.areas(charts.coloured(found["waiting"], colours), pods),
        ),
    ]


def waits(figures: Result) -> Html:
    """How long pods waited, by team and by size."""
    legend = key(("much", "mean"), ("most", "9 in 10 waited less"))
    return section(
        "How long pods waited",
        "Those that still wait at the end are counted with what they have waited by then.",
        legend,
        _waits("team", figures["teams"]),
        _waits("size", figures["sizes"]),
    )


def _waits(word: str, groups: Result) -> Html:
    most = max((each[w] for each in groups.values() for w in ("p90", "mean")), default=0.0) or 1.0
    order = sorted(groups.items(), key=lambda each: (-each[1]["mean"], each[0]))
    rows: list[list[Html | Cell | str]] = [
        [
            words.amounts(name) if word == "size" else name,
            charts.bar((found["p90"] / most, "most"), (found["mean"] / most, "much")),
            Cell(words.span(found["mean"]), found["mean"]),
            Cell(words.span(found["p90"]), found["p90"]),
            Cell(words.span(found["max"]), found["max"]),
            Cell(f"{found['pods']:,}", found["pods"]),
        ]
        for name, found in order
    ]
    return table(f"waits by {word}", (word, "", "mean", "9 in 10", "longest", "pods"), rows)


def fairness(figures: Result, found: Result) -> Html | None:
    """How even it was over time, and what quotas had beside what they are entitled to."""
    parts: list[Html] = []
    if found["end"] and len(figures["teams"]) > 1:
        line = Series("fairness", found["fairness"], "var(--c0)")
        parts.append(charts.lines([line], Scale(found["end"], "Jain's index", percent=False)))
    if found["shares"]:
        parts.append(shares(found))
    if not parts:
        return None  # one team, or no time
    text = (
        "1 if all teams ran for the same part of the time that their pods were there, 1/n if one "
        "of n had everything."
    )
    return section("Fairness", text if len(figures["teams"]) > 1 else "", *parts)


def shares(found: Result) -> Html:
    """What each quota used on average, beside its min and its share."""
    resource = words.resource(found["resource"])
    top = max((max(e["used"], e["min"], e["runtime"]) for e in found["shares"]), default=0.0) or 1
    rows = [
        [
            each["quota"],
            charts.bar(
                (max(each["used"], 0) / top, "most"),
                (min(each["used"], each["min"]) / top, "much"),
                mark=each["runtime"] / top,
            ),
            *(Cell(words.amount(each[word]), each[word]) for word in ("used", "min", "runtime")),
        ]
        for each in found["shares"]
    ]
    columns = ("quota", "", f"{resource} used", "guaranteed", "fair share")
    legend = key(
        ("much", "used, within the guarantee"), ("most", "borrowed"), ("mark", "its fair share")
    )
    return Html(legend + table("shares", columns, rows))


def evictions(figures: Result, found: Result) -> Html:
    """What was evicted, why, and what it cost."""
    if not figures["evictions"]:
        return section("Evictions", "No pod was evicted.")
    unit = words.hours(found["resource"])
    parts: list[Html] = []
    if found["end"]:
        named = {name: values for name, values in found["evictions"].items() if any(values)}
        scale = Scale(found["end"], "evicted pods", whole=True)
        parts.append(charts.areas(charts.coloured(named, charts.largest(named)), scale))
        if any(found["lost"]):
            lost = Series(f"{unit} lost", found["lost"], "var(--bad)")
            parts.append(charts.areas([lost], Scale(found["end"], f"{unit} lost")))
    rows = [
        [
            name,
            Cell(f"{each['evictions']:,}", each["evictions"]),
            Cell(words.amount(each["lost"]), each["lost"]),
        ]
        for name, each in sorted(found["losses"].items(), key=lambda pair: -pair[1]["lost"])
    ]
    text = "What an evicted pod had done is lost: it begins anew, or is done elsewhere."
    return section(
        "Evictions", text, *parts, table("evictions", ("team", "evicted pods", unit), rows)
    )


def nodes(found: Result) -> Html | None:
    """How full each node was over time."""
    if not found["nodes"] or not found["end"]:
        return None
    rows = _merged(found["nodes"])
    resource = words.resource(found["resource"])
    text = f"The stronger the colour, the more of a node's {resource} are in use."
    if len(rows) < len(found["nodes"]):
        text += f" {len(found['nodes']):,} nodes; neighbours are shown together."
    return section("Nodes", text, charts.heat(rows, found["end"]))


def _merged(named: dict[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """At most so many rows: nodes that are next to each other by name are one."""
    size = -(-len(named) // _MOST_NODES)
    if size == 1:
        return named
    names, merged = list(named), dict[str, Sequence[float | None]]()
    for begin in range(0, len(names), size):
        some = names[begin : begin + size]
        label = some[0] if len(some) == 1 else f"{some[0]} to {some[-1]}"
        merged[label] = [_mean(row) for row in zip(*(named[name] for name in some), strict=True)]
    return merged


def _mean(row: Sequence[float | None]) -> float | None:
    there = [each for each in row if each is not None]
    return sum(there) / len(there) if there else None


def pending(found: Sequence[Result], title: str = "Still waiting at the end") -> Html | None:
    """Why pods still wait, the most common reason first, each with one of its messages."""
    if not found:
        return None
    number = Counter(each["reason"] for each in found)
    example = {each["reason"]: each for each in reversed(found)}
    rows = [
        [
            reason,
            Cell(f"{count:,}", count),
            f"{example[reason]['pod']}: {example[reason]['message']}",
        ]
        for reason, count in sorted(number.items(), key=lambda each: (-each[1], each[0]))
    ]
    return section(title, "", table("pending", ("reason", "pods", "such as"), rows))
