"""Why a pod waits, runs or is gone: the answer of `aliquot explain pod`, as plain data.

A waiting pod is asked about as the scheduler's next cycle leaves it: what starts in that cycle
counts as used. If the pod itself starts, that is the answer; else every gate is named, with what
would cure it (`cures`).
"""

from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from aliquot.engine import Evict, Explanation
from aliquot.errors import ArgumentError
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions import copies
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.cures.search import cures, proposals
from aliquot.questions.estimate import estimate
from aliquot.questions.explanation_of_ends import Past, eviction_told, running_told
from aliquot.questions.moment import Moment

Result = dict[str, Any]


def explain_pod(moment: Moment, path: str, past: Past | None = None) -> Result:
    """Everything about one pod; nothing of the moment changes.

    `past` knows the decisions about a pod that is gone.
    """
    if path.count("/") != 1:
        raise ArgumentError(f"pod {path!r} is not namespace/name")
    record = moment.pod(path)
    if record is None:
        told = eviction_told(moment, path, past)
        if told is None:
            raise ArgumentError(f"there is no pod {path}{_nearest(moment, path)}")
        return _empty(path, "Evicted", None, moment) | told
    result = _empty(path, record.phase, moment.engine.quota_of(record.pod), moment)
    if record.phase == "Running":
        return result | running_told(moment, record)
    if record.phase != "Pending":
        told = eviction_told(moment, path, past)
        return result | (told or {"message": f"it has ended: {record.phase}"})
    return result | _waiting(moment, path, record)


def _hopeless(explanation: Explanation) -> str:
    """What is said where no cure was found."""
    words = "; no change of up to three objects that was tried lets it start"
    ahead = explanation.place.ahead
    return f"{words} ({ahead} waiting pods come before it)" if ahead else words


def _nearest(moment: Moment, path: str) -> str:
    paths = [each.pod.path for each in moment.simulation.world.mirror.records.values()]
    near = get_close_matches(path, paths, n=1)
    return f"; did you mean {near[0]}?" if near else f" among {len(paths)} pods"


def _empty(path: str, phase: str, quota: str | None, moment: Moment) -> Result:
    """The answer's fields, for a pod of which there is nothing more to say."""
    return {
        "pod": path,
        "phase": phase,
        "quota": quota,
        "policy": moment.policy,
        "reason": None,
        "message": "",
        "gates": [],
        "nodes": {"total": 0, "feasible": 0, "refused": []},
        "position": None,
        "preemption": {"possible": False, "victims": [], "why": ""},
        "cures": [],
        "estimate": None,
    }


@dataclass(slots=True)
class _Settled:
    """What the next cycle leaves of a waiting pod."""

    told: Result
    explanation: Explanation | None
    evicted: list[str]
    moved: bool
    """Was anything decided but to wait?"""
    proposals: list[Proposal] = field(default_factory=list)
    """What might be changed."""


def _waiting(moment: Moment, path: str, record: PodRecord) -> Result:
    if moment.is_large:
        settled = _settle(moment, path)
    else:
        settled = copies.ask(lambda: _settle(moment, path))
    if settled.explanation is None or settled.explanation.refusal is None:
        return settled.told
    if not settled.moved and not moment.is_large:
        moment.settle()  # so that a copy need only decide what a change leads to
    found = cures(moment, path, settled.explanation, settled.proposals, settled.evicted)
    told = settled.told | {"cures": [each.as_json() for each in found]}
    if not found:
        told["message"] += _hopeless(settled.explanation)
    return told | {"estimate": estimate(moment, path)}


def _settle(moment: Moment, path: str) -> _Settled:
    """Decide, in a copy, and say what became of the pod."""
    simulation = moment.simulation
    nodes = _nodes(moment, path)
    before = len(simulation.history)
    moved = moment.settle()
    record = moment.pod(path)
    assert record is not None
    evictions = moment.evictions(before)
    evicted = list(dict.fromkeys(each.pod.path for each in evictions))
    if record.phase != "Pending":
        told = _starts(record, [each for each in evictions if _is_for(each, record)])
        return _Settled(told | {"nodes": nodes}, None, evicted, moved)
    found = moment.engine.explain(record.pod.uid, simulation.now)
    told = _refused(moment, path, found)
    changes = list(proposals(moment, path, found)) if found.refusal is not None else []
    return _Settled(told, found, evicted, moved, changes)


def _is_for(eviction: Evict, record: PodRecord) -> bool:
    return eviction.claimant is not None and (
        eviction.claimant.uid == record.pod.uid
        or (eviction.claimant.gang is not None and eviction.claimant.gang == record.pod.gang)
    )


def _starts(record: PodRecord, evictions: list[Evict]) -> Result:
    """What is said of a pod that starts in the next cycle."""
    victims = [each.pod.path for each in evictions]
    if not victims:
        return {"message": f"it starts in the next cycle, on {record.pod.node}"}
    why = "; ".join(dict.fromkeys(each.message for each in evictions))
    message = f"it starts in the next cycle, on {record.pod.node}, in place of {', '.join(victims)}"
    return {
        "message": message,
        "preemption": {"possible": True, "victims": victims, "why": why},
    }


def _refused(moment: Moment, path: str, found: Explanation) -> Result:
    """What is said of a pod that goes on waiting."""
    records = moment.simulation.world.mirror.records
    victims = [records[uid].pod.path for uid in found.victims]
    refusal = found.refusal
    return {
        "reason": str(refusal.reason) if refusal is not None else None,
        "message": refusal.message if refusal is not None else "it can start now",
        "gates": [
            {"gate": gate.gate, "passes": gate.passes, "message": gate.message}
            for gate in found.gates
        ],
        "nodes": _nodes(moment, path),
        "position": {"ahead": found.place.ahead, "inQuota": found.place.in_quota},
        "preemption": {
            "possible": bool(victims),
            "victims": victims,
            "why": found.no_preemption,
        },
    }


def _nodes(moment: Moment, path: str) -> Result:
    """How many nodes there are, and which plugins refuse how many of them."""
    record = moment.pod(path)
    assert record is not None
    refused = moment.engine.node_refusals(record.pod.uid)
    total = moment.engine.node_count()
    counts = Counter(refused.values())
    return {
        "total": total,
        "feasible": total - len(refused),
        "refused": [
            {"reason": reason, "count": count}
            for reason, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
    }
