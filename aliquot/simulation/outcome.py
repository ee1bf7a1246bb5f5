"""The outcome of a simulation as plain data: the contract of `aliquot simulate -o json`."""

from typing import Any

from aliquot.dialects.core import amounts
from aliquot.dialects.core.times import seconds
from aliquot.dialects.tensor_fusion import status as gpu_status
from aliquot.engine import (
    Bind,
    Evict,
    GangSummary,
    GpuQuotaSummary,
    QueueSummary,
    QuotaSummary,
    Refusal,
    natural,
    ratio,
)
from aliquot.mirror.statuses import capacities
from aliquot.simulation.simulation import Executed, Simulation

Result = dict[str, Any]


def outcome(simulation: Simulation) -> Result:
    """Everything that happened, and the state at the end."""
    named = simulation.world.mirror.gangs.sent
    found = course(simulation)
    quotas = found.pop("quotas")
    return {
        **found,
        "pods": _pods(simulation),
        "quotas": quotas,
        "queues": [queue(summary) for summary in simulation.engine.queues()],
        "gangs": gangs([each for each in simulation.engine.gangs() if each.name in named]),
        "gpuQuotas": [gpu_quota(summary) for summary in simulation.engine.gpu_quotas()],
    }


def course(simulation: Simulation) -> Result:
    """What happened, what waits at the end and the figures of the quotas, without each pod's."""
    return {
        "policy": simulation.engine.policy,
        "until": seconds(simulation.now),
        "bindings": [_binding(done) for done in simulation.history if _is(done, Bind)],
        "evictions": [_eviction(done) for done in simulation.history if _is(done, Evict)],
        "pending": _pending(simulation),
        "quotas": [quota(summary) for summary in simulation.engine.summarise()],
    }


def _is(done: Executed, kind: type[Bind] | type[Evict]) -> bool:
    return isinstance(done.decision, kind)


def _binding(done: Executed) -> Result:
    bind = done.decision
    assert isinstance(bind, Bind)
    entry: Result = {"at": seconds(done.at), "pod": bind.pod.path, "node": bind.node}
    if bind.devices:
        entry["devices"] = list(bind.devices)
    return entry


def _eviction(done: Executed) -> Result:
    evict = done.decision
    assert isinstance(evict, Evict)
    return {
        "at": seconds(done.at),
        "pod": evict.pod.path,
        "node": evict.pod.node,
        "for": evict.claimant.path if evict.claimant is not None else None,
        "reason": str(evict.reason),
        "message": evict.message,
    }


def _pending(simulation: Simulation) -> list[Result]:
    engine, told = simulation.engine, dict[object, Refusal | None]()
    waiting = []
    for uid, record in simulation.world.mirror.records.items():
        if record.phase != "Pending":
            continue
        kind = engine.kind_of_waiting(uid) or uid
        if kind not in told:
            told[kind] = engine.why(uid, simulation.now)
        refusal = told[kind]
        if refusal is not None:
            entry = {
                "pod": record.pod.path,
                "reason": str(refusal.reason),
                "message": refusal.message,
                "quota": refusal.quota or engine.quota_of(record.pod),
                "resource": refusal.resource,
            }
            waiting.append(entry)
    return sorted(waiting, key=lambda entry: natural(entry["pod"] or ""))


def _pods(simulation: Simulation) -> list[Result]:
    engine, mirror = simulation.engine, simulation.world.mirror
    capacity = capacities(engine, mirror)
    pods = []
    for uid, record in mirror.records.items():
        entry: Result = {
            "pod": record.pod.path,
            "phase": record.phase,
            "node": record.pod.node,
            "quota": engine.quota_of(record.pod),
            "capacity": capacity.get(uid),
        }
        if record.pod.devices:
            entry["devices"] = list(record.pod.devices)
        pods.append(entry)
    return sorted(pods, key=lambda entry: natural(entry["pod"] or ""))


def quota(summary: QuotaSummary) -> Result:
    """The figures of a quota."""
    figures: Result = {
        "name": summary.name,
        "parent": summary.parent,
        "tree": summary.tree,
        "min": amounts.write(summary.min),
        "max": amounts.write(summary.max),
        "used": amounts.write(summary.used),
        "request": amounts.write(summary.request),
        "runtime": amounts.write(summary.runtime),
        "weight": amounts.write(summary.weight),
        "borrowed": amounts.write(summary.borrowed),
        "idle": amounts.write(summary.idle),
    }
    for word, more in (("guaranteed", summary.guaranteed), ("scaledMin", summary.scaled_min)):
        if more is not None:
            figures[word] = amounts.write(more)
    return figures


def queue(summary: QueueSummary) -> Result:
    """The figures of a queue, and of the namespaces in it."""
    return {
        "name": summary.name,
        "weight": summary.weight,
        "deserved": amounts.write(summary.deserved),
        "used": amounts.write(summary.used),
        "namespaces": {
            namespace: {
                "weight": figures.weight,
                "share": ratio.number(figures.share),
                "used": amounts.write(figures.used),
            }
            for namespace, figures in sorted(summary.namespaces.items())
        },
    }


def gangs(summaries: list[GangSummary]) -> list[Result]:
    """The figures of the gangs, in natural order."""
    return [
        {
            "name": summary.name,
            "phase": summary.phase,
            "minMember": summary.min_member,
            "running": summary.running,
        }
        for summary in sorted(summaries, key=lambda each: natural(each.name))
    ]


def gpu_quota(summary: GpuQuotaSummary) -> Result:
    """The figures of a GPUResourceQuota."""
    return {
        "name": f"{summary.namespace}/{summary.name}",
        "used": gpu_status.used(summary),
        "availablePercent": gpu_status.available_percent(summary),
        "conditions": [gpu_status.condition(each) for each in summary.conditions],
    }
