"""Who waits: every pending pod in the order in which the scheduler tries them, and why it waits."""

from typing import Any

from aliquot.engine import Refusal
from aliquot.errors import InputError
from aliquot.questions.estimate import estimates_of
from aliquot.questions.moment import MANY_PODS
from aliquot.questions.overview import View

Result = dict[str, Any]


def queue(view: View, quota: str | None = None) -> Result:
    """The pods that wait, of one quota or of all, in order."""
    simulation = view.simulation
    engine, records = simulation.engine, simulation.world.mirror.records
    if quota is not None:
        known = [each.name for each in engine.summarise()]
        if quota not in known:
            raise InputError("", "", f"there is no quota {quota}; there are {_list(known)}")
    rows, known_refusals = [], dict[object, Refusal | None]()
    ahead: dict[str | None, int] = {}
    order = engine.waiting_order()
    estimates: dict[str, Result] = {}
    if engine.pod_count() <= MANY_PODS:  # else it takes longer than a question may
        estimates = estimates_of(simulation, [uid for uids in order for uid in uids])
    for uids in order:
        for uid in uids:
            pod = records[uid].pod
            of = engine.quota_of(pod)
            ahead[of] = ahead.get(of, 0) + 1
            if quota is not None and of != quota:
                continue
            kind = engine.kind_of_waiting(uid) or uid
            if kind not in known_refusals:
                known_refusals[kind] = engine.why(uid, simulation.now)
            refusal = known_refusals[kind]
            rows.append(
                {
                    "position": ahead[of] if quota is not None else sum(ahead.values()),
                    "pod": pod.path,
                    "quota": of,
                    "priority": pod.priority,
                    "reason": None if refusal is None else str(refusal.reason),
                    "message": "would start now" if refusal is None else refusal.message,
                    "estimate": estimates.get(uid),
                }
            )
    return {"policy": engine.policy, "quota": quota, "pods": rows}


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:5]) or "none"
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
