"""The report of a change: what starts, what goes and what waits with it, beside without it."""

from collections.abc import Mapping, Sequence
from typing import Any

from aliquot.cli.report import charts, comparison, words
from aliquot.cli.report.comparison import compared
from aliquot.cli.report.markup import Html
from aliquot.cli.report.page import Cell, key, page, section, table
from aliquot.engine import quantity
from aliquot.questions.plays.comparison import Play
from aliquot.questions.what_if import DRAINED, figures, resources

Answer = dict[str, Any]
SIDES = ("without the change", "with it")


def report(answer: Answer, plays: Sequence[Play], source: str, change: str) -> str:
    """The whole file; `source` and `change` say what was asked of what."""
    sides = compared(SIDES, plays)
    drained = sum(each["reason"] == DRAINED for each in answer["evictions"])
    sides.figures[1]["evictions"] += drained  # gone before the simulation begins
    return page(
        f"What if {change}? Asked of {source}, policy {answer['policy']}",
        verdict(answer),
        comparison.summary(sides, "With and without the change"),
        quotas(answer["quotas"]),
        _pods("Pods that start", ("at", "pod", "node"), answer["starts"]),
        _pods("Pods that go", ("pod", "for", "reason"), answer["evictions"]),
        waiting(answer["pending"]),
        *(comparison.over_time(sides) if sides.end else ()),
        about="aliquot what-if -o json has the same for a program.",
    )


def verdict(answer: Answer) -> str:
    """One line: what the change leads to."""
    before, after = (len(answer["pending"][side]) for side in ("before", "after"))
    starts = _count(len(answer["starts"]), "starts", "start")
    goes = _count(len(answer["evictions"]), "goes", "go")
    than = "as without it" if after == before else f"{before} without it"
    return f"With the change {starts}, {goes}, and {_count(after, 'waits', 'wait')} ({than})."


def _count(number: int, one: str, more: str) -> str:
    return words.number(number, f"pod {one}", f"pods {more}") if number else f"no pod {one}"


def quotas(pairs: Sequence[Answer]) -> Html | None:
    """A row for each quota and resource whose figures are not 0, the changed ones first."""
    rows: list[tuple[bool, list[Html | Cell | str]]] = []
    for pair in pairs:
        for resource in resources(pair):
            old, new = (figures(pair[side], resource) for side in ("before", "after"))
            top = max(*old, *new, 1)
            rows.append(
                (
                    old == new,
                    [pair["name"], words.resource(resource), *_sides(resource, old, new, top)],
                )
            )
    if not rows:
        return None
    rows.sort(key=lambda each: each[0])
    columns = ("quota", "resource", "before", "", "min", "after", "", "min")
    legend = key(("much", "used, within min"), ("most", "borrowed"), ("mark", "min"))
    table_ = table("quotas", columns, [row for _, row in rows])
    return section(
        "Quotas", "What each uses at the end, before the change and after it.", legend, table_
    )


def _sides(
    resource: str, old: tuple[int, int], new: tuple[int, int], top: int
) -> list[Html | Cell | str]:
    cells: list[Html | Cell | str] = []
    for used, low in (old, new):
        spans = ((used / top, "most"), (min(used, low) / top, "much"))
        shown = [Cell(quantity.text(resource, each), each) for each in (used, low)]
        cells += [shown[0], charts.bar(*spans, mark=low / top), shown[1]]
    return cells


def _pods(title: str, columns: Sequence[str], found: Sequence[Answer]) -> Html | None:
    if not found:
        return None
    rows: list[list[Html | Cell | str]] = [
        [words.span(each[word]) if word == "at" else str(each[word] or "") for word in columns]
        for each in found
    ]
    return section(title, "", table(title, columns, rows))


def waiting(pending: Mapping[str, Sequence[Answer]]) -> Html | None:
    """Each pod that waits without or with the change, and why."""
    old, new = ({e["pod"]: e["reason"] for e in pending[side]} for side in ("before", "after"))
    rows: list[list[Html | Cell | str]] = [
        [pod, old.get(pod, "-"), new.get(pod, "-")] for pod in dict.fromkeys([*old, *new])
    ]
    if not rows:
        return None
    return section("Pods that wait", "", table("waiting", ("pod", *SIDES), rows))
