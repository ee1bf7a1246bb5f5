"""How a cluster stands: its quotas as a tree, what uses and borrows most, what is free where.

Of a live cluster or a snapshot, as it was read. Of manifests, after what can be decided at once was
decided: their pods have no nodes yet. Amounts are Kubernetes quantities; `share` is the largest
part of the cluster in any resource, by which rows are sorted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.tensor_fusion import status as gpu_status
from aliquot.dialects.tensor_fusion.amounts import write as write_gpus
from aliquot.engine import GPU_MEMORY, natural, quantity
from aliquot.json import seek
from aliquot.mirror.devices import asks_by_device
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.statuses import capacities
from aliquot.questions.sources.source import Source
from aliquot.simulation.outcome import queue, quota
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import Inputs

Result = dict[str, Any]
SORTS = ("used", "borrowed", "waiting")
_CORDONED = "node.kubernetes.io/unschedulable"
_WORDS = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/")
"""How resources are named that are GPUs or parts of them."""


@dataclass(frozen=True, slots=True)
class View:
    """A source as it stands, and what its objects became."""

    source: Source
    inputs: Inputs
    simulation: Simulation


def view(source: Source) -> View:
    """The source as it stands."""
    inputs = source.inputs()
    simulation = source.simulation(inputs)
    simulation.feed()
    if not source.accepted:
        simulation.settle()
    return View(source, inputs, simulation)


def tree(view: View) -> Result:
    """Every quota with its figures, its parent, and how many pods run and wait in it."""
    simulation = view.simulation
    engine = simulation.engine
    running, waiting = _counts(simulation)
    return {
        "policy": engine.policy,
        "quotas": [
            {**each, "pods": {"running": running[each["name"]], "waiting": waiting[each["name"]]}}
            for each in map(quota, engine.summarise())
        ],
        "queues": [queue(each) for each in engine.queues()],
    }


def top_quotas(view: View, by: str = "used") -> Result:
    """Quotas by what they use, borrow, or wait for."""
    simulation = view.simulation
    has, rows = total(simulation), list[Result]()
    running, waiting = _counts(simulation)
    for each in simulation.engine.summarise():
        asked = {
            name: max(amount - each.used.get(name, 0), 0) for name, amount in each.request.items()
        }
        figures = {"used": each.used, "borrowed": each.borrowed, "waiting": asked}
        rows.append(
            {
                "name": each.name,
                **{word: amounts.write(_some(found)) for word, found in figures.items()},
                "share": {word: _share(found, has) for word, found in figures.items()},
                "pods": {"running": running[each.name], "waiting": waiting[each.name]},
            }
        )
    rows.sort(key=lambda row: (-row["share"][by], natural(row["name"])))
    return {"policy": simulation.engine.policy, "quotas": rows}


def top_pods(view: View) -> Result:
    """Running pods by what they use, and for how many seconds they have run."""
    simulation = view.simulation
    has, engine, rows = total(simulation), simulation.engine, list[Result]()
    capacity = capacities(engine, simulation.world.mirror)
    for record in _running(simulation):
        requests = dict(record.pod.shape.requests)
        rows.append(
            {
                "pod": record.pod.path,
                "node": record.pod.node,
                "quota": engine.quota_of(record.pod),
                "capacity": capacity.get(record.pod.uid),
                "requests": amounts.write(requests),
                "share": _share(requests, has),
                "seconds": _ran(record, view.source.taken),
            }
        )
    rows.sort(key=lambda row: (-row["share"], natural(row["pod"])))
    return {"policy": engine.policy, "pods": rows}


def top_nodes(view: View) -> Result:
    """Nodes by what is used of them, with what is free."""
    simulation = view.simulation
    used, pods = _use_of_nodes(simulation)
    rows = [
        _node_row(manifest, used.get(manifest.name, Counter()), pods[manifest.name], simulation)
        for manifest in _of_kind(simulation, "Node")
    ]
    rows.sort(key=lambda row: (-row["share"], natural(row["node"])))
    return {"nodes": rows}


def top_gpus(view: View) -> Result:
    """What is used and free of GPUs, by node and resource; and by card, where there are GPUs."""
    simulation = view.simulation
    used, _ = _use_of_nodes(simulation)
    rows = list[Result]()
    for manifest in _of_kind(simulation, "Node"):
        has = _allocatable(manifest, simulation)
        takes = used.get(manifest.name, Counter())
        rows += [
            {"node": manifest.name, "resource": name, **_free(name, has[name], takes[name])}
            for name in sorted(has)
            if name == GPU_MEMORY or name.startswith(_WORDS)
        ]
    rows.sort(key=lambda row: (row["resource"], natural(row["node"])))
    return {"gpus": rows, "cards": list(_cards(simulation))}


def _cards(simulation: Simulation) -> Iterator[Result]:
    mirror = simulation.world.mirror
    asks = asks_by_device(mirror.records.values())
    for name in sorted(mirror.devices.sent, key=natural):
        device, there = mirror.devices.sent[name], asks.get(name, {})
        yield {
            "gpu": name,
            "node": device.node,
            "model": device.model,
            "capacity": write_gpus(device.capacity),
            "available": write_gpus(gpu_status.available(device, there.values())),
            "pods": len(there),
        }


def _node_row(
    manifest: Manifest, used: Mapping[str, int], pods: int, simulation: Simulation
) -> Result:
    has = _allocatable(manifest, simulation)
    takes = {name: used.get(name, 0) for name in has}
    read = node(manifest, simulation.world.mirror.cards)
    free = {name: max(has[name] - takes[name], 0) for name in has}
    unschedulable = any(each.key == _CORDONED for each in read.taints)
    return {
        "node": manifest.name,
        "ready": read.ready,
        "unschedulable": unschedulable,
        "pods": pods,
        "allocatable": amounts.write(has),
        "used": amounts.write(takes),
        "free": amounts.write(free),
        "share": _share(takes, has),
    }


def _allocatable(manifest: Manifest, simulation: Simulation) -> dict[str, int]:
    read = node(manifest, simulation.world.mirror.cards)
    return {name: amount for name, amount in read.allocatable if amount < quantity.LIMIT}


def _free(resource: str, has: int, takes: int) -> Result:
    rows = (("total", has), ("used", takes), ("free", max(has - takes, 0)))
    return {word: quantity.text(resource, amount) for word, amount in rows}


def _use_of_nodes(simulation: Simulation) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """What pods request, and how many there are, by node."""
    used: dict[str, Counter[str]] = {}
    pods: Counter[str] = Counter()
    for record in _running(simulation):
        assert record.pod.node is not None
        there = used.setdefault(record.pod.node, Counter())
        pods[record.pod.node] += 1
        for name, amount in record.pod.shape.requests:
            there[name] += amount
    return used, pods


def _counts(simulation: Simulation) -> tuple[Counter[str | None], Counter[str | None]]:
    """How many pods run, and wait, in each quota."""
    engine = simulation.engine
    running: Counter[str | None] = Counter()
    waiting: Counter[str | None] = Counter()
    for record in simulation.world.mirror.records.values():
        if record.alive:
            counter = running if record.phase == "Running" else waiting
            counter[engine.quota_of(record.pod)] += 1
    return running, waiting


def _ran(record: PodRecord, taken: int | None) -> int | None:
    written = seek(record.body, "status", "startTime")
    if taken is None or not isinstance(written, str):
        return None
    started = timestamp(written, record.pod.path, "status.startTime")
    return None if started is None else max(taken - started, 0) // 10**9


def _running(simulation: Simulation) -> Iterator[PodRecord]:
    records = simulation.world.mirror.records.values()
    return (each for each in records if each.phase == "Running" and each.pod.node is not None)


def _of_kind(simulation: Simulation, kind: str) -> Iterator[Manifest]:
    found = simulation.world.mirror.store.objects.values()
    return (each for each in found if each.kind == kind)


def total(simulation: Simulation) -> Counter[str]:
    """What all nodes have."""
    found: Counter[str] = Counter()
    for manifest in _of_kind(simulation, "Node"):
        found.update(_allocatable(manifest, simulation))
    return found


def _share(takes: Mapping[str, int], total: Mapping[str, int]) -> float:
    """The largest part of what there is in any resource, to six digits."""
    parts = (amount / total[name] for name, amount in takes.items() if total.get(name))
    return round(max(parts, default=0.0), 6)


def _some(figures: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in figures.items() if amount}
