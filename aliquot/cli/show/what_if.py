"""What a change would lead to, on a terminal: quotas before and after, then the pods."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.bars import Segment, bar
from aliquot.cli.drawing.grid import (
    MOST_ROWS,
    Cell,
    elapsed,
    indented,
    omitted,
    print_drawn,
    table,
    titled,
)
from aliquot.engine import quantity
from aliquot.questions.what_if import figures, resources

Answer = dict[str, Any]
_SEGMENTS: tuple[Segment, ...] = (
    ("█", "green", "used within min"),
    ("▓", "yellow", "borrowed"),
    ("░", "cyan", "idle min"),
)
_BAR = 20
"""Characters of a bar: two of them stand side by side with their figures on 100 columns."""


def print_what_if(answer: Answer) -> None:
    """Print what a change would lead to."""
    print_drawn(lambda width: Group(*_parts(answer, width)))


def print_moves(answer: Answer) -> None:
    """Print which pods would have to move so that one starts."""
    print_drawn(lambda width: Group(*_moves(answer, width)))


def _moves(answer: Answer, width: int) -> Iterator[RenderableType]:
    moves, pod = answer["moves"], answer["pod"]
    if answer["why"] is not None:
        yield Text(f"policy {answer['policy']}: no moves let {pod} start: {answer['why']}")
        return
    number = "1 pod moves" if len(moves) == 1 else f"{len(moves)} pods move"
    yield Text(f"policy {answer['policy']}: {pod} starts on {answer['node']} if {number}")
    rows: list[list[Cell]] = [[each["pod"], each["from"], each["to"]] for each in moves]
    yield titled("MOVES", *_listed(("pod", "from", "to"), rows, len(rows), width))


def _parts(answer: Answer, width: int) -> Iterator[RenderableType]:
    pending = answer["pending"]
    started, evicted = len(answer["starts"]), len(answer["evictions"])
    words = f"policy {answer['policy']}: with the change {started} start, {evicted} evicted, "
    yield Text(f"{words}{len(pending['after'])} waiting ({len(pending['before'])} without it)")
    if answer["quotas"]:
        yield titled("QUOTAS", _quotas(answer["quotas"], width), _legend())
    if answer["starts"]:
        rows: list[list[Cell]] = [
            [elapsed(each["at"]), each["pod"], each["node"]]
            for each in islice(answer["starts"], MOST_ROWS)
        ]
        yield titled("STARTS", *_listed(("at", "pod", "node"), rows, started, width))
    if answer["evictions"]:
        rows = [
            [each["pod"], each["for"] or "", Text(each["reason"], style="red")]
            for each in islice(answer["evictions"], MOST_ROWS)
        ]
        yield titled("EVICTED", *_listed(("pod", "for", "reason"), rows, evicted, width))
    changed = list(_waiting(pending["before"], pending["after"]))
    if changed:
        columns = ("pod", "before", "after")
        yield titled("WAITING", *_listed(columns, changed[:MOST_ROWS], len(changed), width))


def _listed(
    columns: tuple[str, ...], rows: list[list[Cell]], number: int, width: int
) -> list[RenderableType]:
    return [table(width, columns, rows), *map(indented, omitted(number - len(rows)))]


def _waiting(before: list[Answer], after: list[Answer]) -> Iterator[list[Cell]]:
    """Each pod that waits without or with the change, and why."""
    old, new = ({each["pod"]: each["reason"] for each in some} for some in (before, after))
    for pod in dict.fromkeys([*old, *new]):
        then = new.get(pod)
        style = "green" if then is None else "yellow"
        yield [pod, old.get(pod, "-"), Text(then or "-", style=style)]


def _quotas(pairs: list[Answer], width: int) -> RenderableType:
    """A line for each quota and resource: figures and a bar, before and after."""
    rows: list[list[Cell]] = []
    for pair in pairs:
        for resource in resources(pair):
            old, new = (figures(pair[word], resource) for word in ("before", "after"))
            scale = max(*old, *new, 1)
            rows.append(
                [
                    pair["name"] if not rows or rows[-1][0] != pair["name"] else "",
                    resource,
                    *_side(resource, old, pair["before"], scale),
                    *_side(resource, new, pair["after"], scale),
                ]
            )
    columns = ("quota", "resource", "used/min", "before", "used/min ", "after")
    return table(width, columns, rows, right=("used/min", "used/min "))


def _side(
    resource: str, figures: tuple[int, int], quota: Mapping[str, Any] | None, scale: int
) -> tuple[Cell, Cell]:
    if quota is None:
        return "-", Text()
    used, low = figures
    ends = (min(used, low), used, max(used, low))
    words = f"{quantity.text(resource, used)}/{quantity.text(resource, low)}"
    return words, bar(ends, _SEGMENTS, scale, _BAR)


def _legend() -> RenderableType:
    words = Text("   ").join(Text.assemble((s, style), f" {w}") for s, style, w in _SEGMENTS)
    return indented(words)
