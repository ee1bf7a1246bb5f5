"""Queues as bars, children below their parent; below each, the namespaces that share it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.show.bar import Part, bar, legend, room
from aliquot.cli.show.grid import indented, table
from aliquot.cluster.outcome import Result
from aliquot.engine.objects import Quota
from aliquot.engine.quantity import LIMIT, amount, text

_PARTS: tuple[Part, ...] = (
    ("█", "green", "used"),
    ("▓", "yellow", "beyond what it deserves"),
    ("░", "cyan", "deserved, idle"),
    ("·", "bright_black", "up to capability"),
)
_OF_NAMESPACE: tuple[Part, ...] = (("▪", "blue", "of a namespace"),)
_HEADINGS = ("queue", "weight", "resource", "used", "deserved")
_NO_BARS = 72
"""A console narrower than this has no room for them."""


class _Line(NamedTuple):
    """A line: whose it is, its words, the ends of its bar's parts, and a remark."""

    of_queue: bool
    resource: str
    words: tuple[str, ...]
    ends: tuple[int, ...]
    remark: Text


def queue_bars(
    queues: list[Result], tree: Mapping[str, Quota], requests: Mapping[str, Result], width: int
) -> Iterator[RenderableType]:
    """The table, and what its signs mean. `requests` is what each queue asks for, by resource."""
    by_name = {each["name"]: each for each in queues}
    lines = [
        line
        for name, depth in _from_the_top(by_name, tree)
        for line in (
            *_of_queue(by_name[name], tree[name], requests.get(name, {}), depth),
            *_of_namespaces(by_name[name], depth + 1),
        )
    ]
    scale: dict[str, int] = {}
    for line in lines:
        scale[line.resource] = max(scale.get(line.resource, 1), *line.ends, 1)
    length = room(width, [_HEADINGS, *(each.words for each in lines)], (x.remark for x in lines))
    drawn = table(width, *_HEADINGS, "bar", "why", right=("weight", "used", "deserved"))
    for column in drawn.columns[len(_HEADINGS) :]:
        column.header = ""
    for line in lines:
        parts = _PARTS if line.of_queue else _OF_NAMESPACE
        name = Text(line.words[0], style="bold" if line.of_queue else "")
        shown = bar(line.ends, parts, scale[line.resource], length if width >= _NO_BARS else 0)
        drawn.add_row(name, *line.words[1:], shown, line.remark)
    yield indented(drawn)
    if width >= _NO_BARS:
        yield indented(legend((*_PARTS, *_OF_NAMESPACE)))


def _from_the_top(names: Iterable[str], tree: Mapping[str, Quota]) -> Iterator[tuple[str, int]]:
    """Each queue after its parent, and how deep it lies."""
    below: dict[str | None, list[str]] = {}
    for name in names:
        below.setdefault(tree[name].parent, []).append(name)
    rest = [(name, 0) for name in reversed(below.get(None, []))]
    while rest:
        name, depth = rest.pop()
        yield name, depth
        rest += [(each, depth + 1) for each in reversed(below.get(name, []))]


def _of_queue(queue: Result, quota: Quota, request: Result, depth: int) -> Iterator[_Line]:
    """A line for each resource that the queue names or its pods ask for."""
    head, said = ("  " * depth + queue["name"], str(queue["weight"])), _said(quota)
    for resource in sorted(request or queue["used"]) or [""]:
        used, deserved = (queue[word].get(resource, "0") for word in ("used", "deserved"))
        words = (*head, resource, *((used, deserved) if resource else ("", "")))
        remark = Text(", ").join([*said, *_wants(request, resource, used)])
        yield _Line(True, resource, words, _ends(quota, resource, used, deserved), remark)
        head, said = ("", ""), []


def _of_namespaces(queue: Result, depth: int) -> Iterator[_Line]:
    """A line for each namespace in a queue, and resource that it uses."""
    for namespace, figures in queue["namespaces"].items():
        head = ("  " * depth + namespace, str(figures["weight"]))
        share = Text(f"share {figures['share']:.1%}")
        for resource in sorted(figures["used"]) or [""]:
            used = figures["used"].get(resource, "0")
            words = (*head, resource, used if resource else "", "")
            yield _Line(False, resource, words, (amount(resource, used),), share)
            head, share = ("", ""), Text()


def _ends(quota: Quota, resource: str, used: str, deserved: str) -> tuple[int, ...]:
    """Where each part of the bar ends; a ceiling that bounds nothing is not drawn."""
    held, right = amount(resource, used), amount(resource, deserved)
    ceiling = dict(quota.max).get(resource, LIMIT)
    most = max(held, right)
    return (min(held, right), held, most, max(most, ceiling if ceiling < LIMIT else 0))


def _said(quota: Quota) -> list[Text]:
    words = [Text("closed", style="red")] if quota.closed else []
    priority = [Text(f"priority {quota.priority}", style="magenta")] if quota.priority else []
    return [*words, *priority]


def _wants(request: Result, resource: str, used: str) -> list[Text]:
    wanted = amount(resource, request.get(resource, "0"))
    if wanted <= amount(resource, used):
        return []
    return [Text(f"wants {text(resource, wanted)}", style="bright_black")]
