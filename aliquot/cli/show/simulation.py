"""A simulation on a terminal: quotas as bars, every binding and eviction, what waits and why."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.gpu_quota_bars import gpu_quota_bars
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
from aliquot.cli.drawing.queue_bars import gang_bars, queue_bars
from aliquot.cli.drawing.quota_bars import quota_tables
from aliquot.dialects.core.findings import list_names
from aliquot.dialects.core.times import seconds
from aliquot.engine import Bind, Evict
from aliquot.simulation.outcome import Result, outcome
from aliquot.simulation.simulation import Executed, Simulation


def print_tables(simulation: Simulation, why: str) -> None:
    """Print the tables: in colour on a terminal, plain and of a fixed width anywhere else."""
    print_drawn(lambda width: tables(simulation, why, width))


def tables(simulation: Simulation, why: str, width: int) -> RenderableType:
    """The tables, to be printed on a console of this width."""
    return Group(*_parts(simulation, outcome(simulation), why, width))


def _parts(
    simulation: Simulation, result: Result, why: str, width: int
) -> Iterator[RenderableType]:
    yield _headline(result, why)
    queues = {each["name"] for each in result["queues"]}
    quotas = [each for each in result["quotas"] if each["name"] not in queues]
    yield from quota_tables(result["policy"], quotas, width)
    if queues:
        tree = simulation.world.mirror.quota_index.quotas
        requests = {each["name"]: each["request"] for each in result["quotas"]}
        yield titled("QUEUES", *queue_bars(result["queues"], tree, requests, width))
    if result["gangs"]:
        yield titled("GANGS", *gang_bars(result["gangs"], width))
    if result["gpuQuotas"]:
        bounds = simulation.world.mirror.gpu_quotas.sent
        yield titled("GPU QUOTAS", *gpu_quota_bars(result["gpuQuotas"], bounds, width))
    if simulation.history:
        yield titled("WHAT HAPPENED", _history(simulation.history, width))
    if result["pending"]:
        yield titled("WAITING", _waiting(result["pending"], width))


def _headline(result: Result, why: str) -> Text:
    """The policy and why it was chosen, the end of the simulation, and pods by phase."""
    count = Counter(pod["phase"] for pod in result["pods"])
    line = Text.assemble("policy ", (result["policy"], "bold"), f" ({why}), ")
    line.append(f"simulated to {elapsed(result['until'])}: ")
    parts = [
        (f"{count['Running']} running", "green"),
        (f"{count['Pending']} waiting", "yellow" if count["Pending"] else ""),
        (f"{count['Evicted']} evicted", "red" if count["Evicted"] else ""),
    ]
    others = {"Succeeded": "ended", "Failed": "failed", "Deleted": "deleted"}
    parts += [(f"{count[phase]} {word}", "") for phase, word in others.items() if count[phase]]
    return line.append(Text(", ").join(Text(*part) for part in parts))


def _history(history: Sequence[Executed], width: int) -> RenderableType:
    """A line for each binding and eviction, in the order of the decisions."""
    shown = [
        decision_row(elapsed(seconds(done.at)), done.decision)
        for done in islice(history, MOST_ROWS)
    ]
    return decisions_table(width, shown, omitted(len(history) - MOST_ROWS))


def decision_row(at: str, decision: Bind | Evict) -> list[Cell]:
    """A binding or an eviction, as `decisions_table` shows it."""
    pod = decision.pod
    if isinstance(decision, Bind):
        devices = f" ({list_names(decision.devices)})" if decision.devices else ""
        return [at, Text("starts", style="green"), pod.path, f"{decision.node}{devices}", ""]
    why = f"{decision.reason}: {decision.message}"
    return [at, Text("evicted", style="red"), pod.path, pod.node or "", why]


def decisions_table(
    width: int, rows: Sequence[Sequence[Cell]], more: Sequence[Text] = ()
) -> RenderableType:
    """Decisions in their order, each with its reason if it is an eviction."""
    drawn = table(width, ("at", "", "pod", "node", "why"), rows, right=("at",))
    return Group(drawn, *(indented(each) for each in more))


def _waiting(pending: list[Result], width: int) -> RenderableType:
    """A line for each reason and message, with the first pod that waits for it and a count."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in pending:
        groups.setdefault((each["reason"], each["message"]), []).append(each["pod"])
    rows: list[list[Cell]] = []
    for (reason, message), pods in islice(groups.items(), MOST_ROWS):
        others = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
        rows.append([f"{pods[0]}{others}", Text(reason, style="yellow"), message])
    left_out = omitted(len(groups) - MOST_ROWS)
    return Group(table(width, ("pods", "reason", "why"), rows), *map(indented, left_out))
