"""`aliquot tree`, `top` and `queue` as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.grid import MOST_ROWS, Cell, indented, omitted, table, titled
from aliquot.cli.drawing.queue_bars import queue_bars
from aliquot.cli.drawing.quota_bars import quota_tables
from aliquot.questions.overview import View

Result = dict[str, Any]
_STYLES = {"over-quota": "yellow"}


def tree(view: View, result: Result, width: int, most: int | None = None) -> RenderableType:
    """The quotas with bars, children below their parents; queues with their namespaces."""
    parts: list[RenderableType] = [Text.assemble("policy ", (result["policy"], "bold"))]
    queues = {each["name"] for each in result["queues"]}
    quotas = [each for each in result["quotas"] if each["name"] not in queues]
    if quotas:
        parts += quota_tables(result["policy"], quotas, width)
    if queues:
        known = view.simulation.world.mirror.quota_index.quotas
        requests = {each["name"]: each["request"] for each in result["quotas"]}
        parts.append(titled("QUEUES", *queue_bars(result["queues"], known, requests, width)))
    if not quotas and not queues:
        parts.append(Text("there are no quotas"))
    counts = [
        (each["name"], str(each["pods"]["running"]), str(each["pods"]["waiting"]))
        for each in result["quotas"]
        if each["pods"]["waiting"] or each["pods"]["running"]
    ]
    if counts:
        rows = counts[: MOST_ROWS if most is None else most]
        drawn = table(width, ("quota", "running", "waiting"), rows, ("running", "waiting"))
        left = map(indented, omitted(len(counts) - len(rows)))
        parts.append(titled("PODS", drawn, *left))
    return Group(*parts)


def top_quotas(result: Result, width: int, most: int | None = None) -> RenderableType:
    """A line for each quota."""
    columns = ("quota", "used", "borrowed", "waits for", "running", "waiting")
    rows = [
        [
            each["name"],
            _amounts(each["used"], each["share"]["used"], ("pods",)),
            Text(_amounts(each["borrowed"], each["share"]["borrowed"], ("pods",)), style="yellow"),
            _amounts(each["waiting"], each["share"]["waiting"], ("pods",)),
            str(each["pods"]["running"]),
            str(each["pods"]["waiting"]),
        ]
        for each in result["quotas"]
    ]
    return _listed(width, columns, rows, ("running", "waiting"), most)


def top_pods(result: Result, width: int, most: int | None = None) -> RenderableType:
    """A line for each running pod."""
    columns = ("pod", "quota", "node", "requests", "share", "for", "")
    rows = [
        [
            each["pod"],
            each["quota"] or "-",
            each["node"],
            _amounts(each["requests"], skipped=("pods",)),
            _percent(each["share"]),
            _span(each["seconds"]),
            Text(
                each["capacity"] or "", style="yellow" if each["capacity"] == "over-quota" else ""
            ),
        ]
        for each in result["pods"]
    ]
    return _listed(width, columns, rows, ("share", "for"), most)


def top_nodes(result: Result, width: int, most: int | None = None) -> RenderableType:
    """A line for each node."""
    columns = ("node", "used", "free", "share", "pods", "")
    rows = [
        [
            each["node"],
            _amounts(each["used"], skipped=("pods",)),
            _amounts(each["free"], skipped=("pods",)),
            _percent(each["share"]),
            str(each["pods"]),
            Text(_state(each), style="red" if not each["ready"] else "yellow"),
        ]
        for each in result["nodes"]
    ]
    return _listed(width, columns, rows, ("share", "pods"), most)


def top_gpus(result: Result, width: int, most: int | None = None) -> RenderableType:
    """A line for each node and resource, and for each card that is shared."""
    rows = [
        [each["node"], each["resource"], each["total"], each["used"], each["free"]]
        for each in result["gpus"]
    ]
    numbers = ("total", "used", "free")
    parts = [_listed(width, ("node", "resource", *numbers), rows, numbers, most)]
    cards: list[list[Cell]] = [
        [
            each["gpu"],
            each["node"],
            each["model"],
            _amounts(each["capacity"] or {}),
            _amounts(each["available"] or {}),
            str(each["pods"]),
        ]
        for each in result["cards"]
    ]
    if cards:
        columns = ("gpu", "node", "model", "capacity", "available", "pods")
        parts.append(titled("CARDS", _listed(width, columns, cards, ("pods",), most)))
    return Group(*parts)


def queue(result: Result, width: int, most: int | None = None) -> RenderableType:
    """A line for each waiting pod, in order."""
    columns = ("", "pod", "quota", "priority", "reason", "starts in", "why")
    rows = [
        [
            str(each["position"]),
            each["pod"],
            each["quota"] or "-",
            str(each["priority"]),
            Text(each["reason"] or "-", style="yellow" if each["reason"] else "green"),
            _span(each["estimate"] and each["estimate"]["seconds"]),
            each["message"],
        ]
        for each in result["pods"]
    ]
    return _listed(width, columns, rows, ("", "priority", "starts in"), most)


def _listed(
    width: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    right: tuple[str, ...],
    most: int | None,
) -> RenderableType:
    if not rows:
        return indented(Text("none"))
    shown = rows if most is None else rows[:most]
    left = omitted(len(rows) - len(shown))
    return Group(table(width, columns, shown, right), *map(indented, left))


def _amounts(found: Mapping[str, str], share: float = 0.0, skipped: Sequence[str] = ()) -> str:
    words = ", ".join(f"{text} {name}" for name, text in found.items() if name not in skipped)
    return f"{words} ({_percent(share)})" if share else words or "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _state(row: Result) -> str:
    words = [] if row["ready"] else ["not ready"]
    return ", ".join([*words, *(["cordoned"] if row["unschedulable"] else [])])
