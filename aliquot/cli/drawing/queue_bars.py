"""Volcano's objects as bars: queues with the namespaces that share them, and gangs.

Child queues stand below their parent, the namespaces of a queue below the queue.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.drawing.bars import BarRow, Segment, bar_table, depth_first
from aliquot.cli.drawing.grid import MOST_ROWS, omitted
from aliquot.engine import Quota, quantity, ratio
from aliquot.simulation.outcome import Result

_OF_QUEUE: tuple[Segment, ...] = (
    ("█", "green", "used"),
    ("▓", "yellow", "beyond what it deserves"),
    ("░", "cyan", "deserved, idle"),
    ("·", "bright_black", "up to capability"),
)
_OF_NAMESPACE: tuple[Segment, ...] = (("▪", "blue", "of a namespace"),)
_OF_GANG: tuple[Segment, ...] = (
    ("█", "green", "running"),
    ("░", "bright_black", "still to start"),
)
_HEADINGS = ("queue", "weight", "resource", "used", "deserved")
_GANG_BAR = 10
"""Characters of a gang's bar: it shows a fraction only, the numbers stand beside it."""
_PHASE_STYLES = {"Running": "green", "Completed": "bright_black", "Unknown": "red"}


class _Line(NamedTuple):
    """A line of a queue, or of a namespace in it."""

    of_queue: bool
    resource: str
    cells: tuple[str, ...]
    ends: tuple[int, ...]
    remark: Text


def queue_bars(
    queues: list[Result], tree: Mapping[str, Quota], requests: Mapping[str, Result], width: int
) -> Iterator[RenderableType]:
    """The table and its legend. `requests` is what each queue asks for, by resource."""
    by_name = {each["name"]: each for each in queues}
    lines = [
        line
        for name, depth in depth_first({each: tree[each].parent for each in by_name})
        for line in (
            *_queue_lines(by_name[name], tree[name], requests.get(name, {}), depth),
            *_namespace_lines(by_name[name], depth + 1),
        )
    ]
    scale: dict[str, int] = {}
    for line in lines:
        scale[line.resource] = max(scale.get(line.resource, 1), *line.ends, 1)
    rows = [
        BarRow(
            line.cells,
            _OF_QUEUE if line.of_queue else _OF_NAMESPACE,
            line.ends,
            scale[line.resource],
            line.remark,
            "bold" if line.of_queue else "",
        )
        for line in lines
    ]
    return bar_table(width, _HEADINGS, rows)


def gang_bars(gangs: list[Result], width: int) -> Iterator[RenderableType]:
    """A line for each gang: its phase, and how many of its minMember pods run."""
    rows = [_gang_row(gang) for gang in islice(gangs, MOST_ROWS)]
    more = omitted(len(gangs) - MOST_ROWS)
    return bar_table(width, ("gang", "phase", "running"), rows, more, longest=_GANG_BAR)


def _gang_row(gang: Result) -> BarRow:
    running, needed = gang["running"], gang["minMember"]
    phase = Text(gang["phase"], style=_PHASE_STYLES.get(gang["phase"], "yellow"))
    ends = (min(running, needed), needed) if gang["phase"] != "Completed" else (needed, needed)
    cells = (gang["name"], phase, f"{running}/{needed}")
    return BarRow(cells, _OF_GANG, ends, needed, Text(), style="")


def _queue_lines(queue: Result, quota: Quota, request: Result, depth: int) -> Iterator[_Line]:
    """A line for each resource that the queue names or its pods ask for."""
    head, state = ("  " * depth + queue["name"], str(queue["weight"])), _state(quota)
    for resource in sorted(request or queue["used"]) or [""]:
        used, deserved = (queue[word].get(resource, "0") for word in ("used", "deserved"))
        cells = (*head, resource, *((used, deserved) if resource else ("", "")))
        remark = Text(", ").join([*state, *_wants(request, resource, used)])
        yield _Line(True, resource, cells, _ends(quota, resource, used, deserved), remark)
        head, state = ("", ""), []


def _namespace_lines(queue: Result, depth: int) -> Iterator[_Line]:
    """A line for each namespace in a queue and resource that its pods use."""
    for namespace, figures in queue["namespaces"].items():
        head = ("  " * depth + namespace, str(figures["weight"]))
        share = Text(f"share {ratio.percent(figures['share'])}%")
        for resource in sorted(figures["used"]) or [""]:
            used = figures["used"].get(resource, "0")
            cells = (*head, resource, used if resource else "", "")
            yield _Line(False, resource, cells, (quantity.amount(resource, used),), share)
            head, share = ("", ""), Text()


def _ends(quota: Quota, resource: str, used: str, deserved: str) -> tuple[int, ...]:
    """Where each segment of the bar ends; an unlimited capability is not drawn."""
    held, right = quantity.amount(resource, used), quantity.amount(resource, deserved)
    capability = dict(quota.max).get(resource, quantity.LIMIT)
    most = max(held, right)
    return (
        min(held, right),
        held,
        most,
        max(most, capability if capability < quantity.LIMIT else 0),
    )


def _state(quota: Quota) -> list[Text]:
    """Whether the queue is closed, and its priority if it has one."""
    closed = [Text("closed", style="red")] if quota.closed else []
    priority = [Text(f"priority {quota.priority}", style="magenta")] if quota.priority else []
    return [*closed, *priority]


def _wants(request: Result, resource: str, used: str) -> list[Text]:
    """What the queue's pods ask for, where some of them wait."""
    wanted = quantity.amount(resource, request.get(resource, "0"))
    if wanted <= quantity.amount(resource, used):
        return []
    return [Text(f"wants {quantity.text(resource, wanted)}", style="bright_black")]
