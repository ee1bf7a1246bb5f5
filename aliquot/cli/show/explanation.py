"""Explanations on a terminal: the verdict first, then gates, nodes, preemption and cures."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

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
from aliquot.cli.drawing.quota_bars import quota_bars

Answer = dict[str, Any]
_GREEN, _RED, _YELLOW = "green", "red", "yellow"


def print_explanation(answer: Answer) -> None:
    """Print what is said of a pod."""
    print_drawn(lambda width: Group(*_pod(answer, width)))


def _pod(answer: Answer, width: int) -> Iterator[RenderableType]:
    head = Text.assemble("pod ", (answer["pod"], "bold"), f", {answer['phase']}")
    if answer["quota"]:
        head.append(f", quota {answer['quota']}")
    yield head.append(f", policy {answer['policy']}")
    if answer["reason"]:
        yield Text.assemble((answer["reason"], _YELLOW), f": {answer['message']}")
    else:
        yield Text(answer["message"])
    if answer["gates"]:
        yield titled("GATES", table(width, ("gate", "", "why"), list(_gates(answer))))
    if answer["nodes"]["total"]:
        yield titled("NODES", indented(Text(_nodes(answer["nodes"]))))
    if answer["position"]:
        words = f"{answer['position']['ahead']} waiting pods ahead"
        if answer["quota"]:
            words += f", {answer['position']['inQuota']} of its quota"
        yield titled("POSITION", indented(Text(words)))
    if answer["gates"]:
        yield titled("PREEMPTION", indented(Text(_preemption(answer["preemption"]))))
        yield titled("CURES", _cures(answer["cures"], width))
        yield titled("ESTIMATE", indented(Text(estimate_words(answer["estimate"]))))


def _gates(answer: Answer) -> Iterator[list[Cell]]:
    for gate in answer["gates"]:
        sign = Text("passes", style=_GREEN) if gate["passes"] else Text("refuses", style=_RED)
        yield [gate["gate"], sign, gate["message"]]


def _nodes(nodes: Answer) -> str:
    """`0/3 nodes fit; refused: 2 NodeResourcesFit, 1 TaintToleration`."""
    words = f"{nodes['feasible']}/{nodes['total']} nodes fit"
    refused = ", ".join(f"{each['count']} {each['reason']}" for each in nodes["refused"])
    return f"{words}; refused: {refused}" if refused else words


def _preemption(preemption: Answer) -> str:
    victims = ", ".join(preemption["victims"])
    return f"in place of {victims}" if victims else f"none: {preemption['why']}"


def _cures(cures: list[Answer], width: int) -> RenderableType:
    """A line for each cure, with who is evicted by it."""
    if not cures:
        return indented(Text("none was found"))
    rows: list[list[Cell]] = []
    for number, cure in enumerate(cures, start=1):
        evicts = ", ".join(cure["evicts"])
        words = f"evicts {evicts}" if evicts else "evicts no pod"
        rows.append([str(number), f"{cure['summary']} ({words})"])
    return table(width, ("", "why"), rows, right=("",))


def estimate_words(estimate: Answer | None) -> str:
    """When the pod is expected to start, in words."""
    if estimate is None:
        return "not known"
    low, middle, high = (elapsed(round(estimate[word])) for word in ("p10", "seconds", "p90"))
    return f"in {middle} ({low} to {high}); {estimate['basis']}"


def print_quota_explanation(answer: Answer) -> None:
    """Print what is said of a quota."""
    print_drawn(lambda width: Group(*_quota(answer, width)))


def _quota(answer: Answer, width: int) -> Iterator[RenderableType]:
    quota, pods = answer["quota"], answer["pods"]
    head = Text.assemble("quota ", (quota["name"], "bold"), f", policy {answer['policy']}: ")
    yield head.append(
        f"pods in-quota {pods['inQuota']}, over-quota {pods['overQuota']}, "
        f"waiting {pods['waiting']}"
    )
    yield titled("QUOTA", *quota_bars(answer["policy"], [{**quota, "parent": None}], width))
    if len(answer["path"]) > 1 or answer["policy"] in ("hierarchy", "queues"):
        columns = ("quota", "resource", "used", "wants", "runtime", "min", "max")
        yield titled("WAY UP", table(width, columns, list(_path(answer)), right=columns[2:]))
    if answer["lends"]:
        yield titled("LENDS", indented(Text(_lends(answer))))
    if answer["borrowsFrom"]:
        names = ", ".join(_figures(each["quota"], each["idle"]) for each in answer["borrowsFrom"])
        words = f"{_list(quota['borrowed'])}, of what is idle of {names}"
        yield titled("BORROWS", indented(Text(words)))
    if answer["waiting"]:
        yield titled("WAITING", _waiting(answer["waiting"], width))


def _path(answer: Answer) -> Iterator[list[Cell]]:
    for step in answer["path"]:
        for row in step["resources"]:
            figures = [row.get(word, "") for word in ("used", "request", "runtime", "min")]
            yield [step["quota"], row["resource"], *figures, row.get("max", "∞")]


def _lends(answer: Answer) -> str:
    to = ", ".join(_figures(each["quota"], each["borrows"]) for each in answer["lendsTo"])
    return f"{_list(answer['lends'])}; borrowed by {to}"


def _figures(name: str, figures: dict[str, str]) -> str:
    return f"{name} ({_list(figures)})"


def _list(figures: dict[str, str]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in figures.items() if amount != "0")


def _waiting(waiting: list[Answer], width: int) -> RenderableType:
    """A line for each reason, with the first pod that waits for it and a count."""
    count = Counter((each["reason"], each["message"]) for each in waiting)
    first: dict[tuple[str, str], str] = {}
    for each in waiting:
        first.setdefault((each["reason"], each["message"]), each["pod"])
    rows: list[list[Cell]] = []
    for (reason, message), pod in islice(first.items(), MOST_ROWS):
        more = count[reason, message] - 1
        name = f"{pod} and {more} more" if more else pod
        rows.append([name, Text(reason, style=_YELLOW), message])
    left_out = omitted(len(first) - MOST_ROWS)
    return Group(table(width, ("pods", "reason", "why"), rows), *map(indented, left_out))
