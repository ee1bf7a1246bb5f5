"""What is said of a pod that runs, and of one that was evicted.

A running pod: in- or over-quota, since when it runs, and which pods could take its place. An
evicted one: for which pod and by which rule, from what was decided in a simulation, from the events
that the control plane wrote, or from its decision log.
"""

import re
from collections.abc import Callable
from typing import Any

from aliquot.dialects.core import lifetimes, pods
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.times import seconds
from aliquot.engine import EVICTION_REASONS, Evict
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions.moment import Moment

Result = dict[str, Any]
Past = Callable[[str], list[Result]]
"""The decisions about a pod, as they were taken, the last one last."""
_MOST_NAMED = 3
_OWN_WORDS = re.compile(r"(?P<reason>\w+): evicted(?: for (?P<claimant>\S+))?: (?P<message>.*)")
_EVICTED = frozenset({*EVICTION_REASONS, "Evicted"})
"""The reasons of events that say that a pod was evicted, those of other schedulers included."""


def running_told(moment: Moment, record: PodRecord) -> Result:
    """What is said of a running pod."""
    engine, pod = moment.engine, record.pod
    quota = engine.quota_of(pod)
    capacity = None
    if quota is not None:
        capacity = "over-quota" if pod.uid in engine.over_quota_pods() else "in-quota"
    by = _evictable_by(moment, record, quota, capacity)
    since = _since(moment, record)
    words = [f"it runs on {pod.node}"]
    words += [f"since {since}"] if since else []
    words += [f"{capacity} in {quota}"] if quota is not None else ["without a quota"]
    who = f"it can be evicted by {'; by '.join(by)}" if by else "no pod can take its place"
    running = {"node": pod.node, "capacity": capacity, "since": since, "evictableBy": by}
    told: Result = {"message": f"{', '.join(words)}; {who}", "running": running}
    if pod.terminating:
        told["message"] = f"it terminates on {pod.node}"
    return told


def _since(moment: Moment, record: PodRecord) -> str | None:
    """When the pod was started, as its status says."""
    namespace, _, name = record.pod.path.partition("/")
    found = moment.simulation.world.mirror.store.objects.get(("Pod", namespace, name))
    if not isinstance(found, Manifest):
        return None
    status = found.body.get("status")
    started = status.get("startTime") if isinstance(status, dict) else None
    known = lifetimes.start_time(found, pods.status(found)) is not None
    return str(started) if known and started else None


def _evictable_by(
    moment: Moment, record: PodRecord, quota: str | None, capacity: str | None
) -> list[str]:
    """Which pods could take the place of a running one, by the rules of the policy."""
    pod, policy, by = record.pod, moment.policy, list[str]()
    knobs = moment.source.settings.eviction
    if pod.terminating:
        return by
    if not pod.preemptible and capacity != "over-quota":
        return by
    if quota is None:
        by.append(f"pods without a quota of priority above {pod.priority}")
        if knobs.quotaless == "lowest":
            by.append("pods of any quota (eviction.quotaless: lowest)")
        return by
    by.append(f"pods of quota {quota} of priority above {pod.priority}")
    if capacity == "over-quota":
        entitled = [each for each in _entitled(moment) if each != quota]
        word = {"hierarchy": "runtime", "queues": "deserved share"}.get(policy, "min")
        if entitled:
            more = f" and {len(entitled) - _MOST_NAMED} more" if len(entitled) > _MOST_NAMED else ""
            names = ", ".join(entitled[:_MOST_NAMED])
            by.append(f"pods of quotas that use less than their {word}: {names}{more}")
    if str(knobs.min_runtime) not in ("0", "0s") and by:
        by[-1] += f", once it has run for {knobs.min_runtime}"
    return by


def _entitled(moment: Moment) -> list[str]:
    """The quotas that use less than they are entitled to."""
    found = []
    for each in moment.engine.summarise():
        share = each.runtime if moment.policy in ("hierarchy", "queues") else each.min
        if any(each.used.get(name, 0) < amount for name, amount in share.items()):
            found.append(each.name)
    return found


def eviction_told(moment: Moment, path: str, past: Past | None) -> Result | None:
    """What is said of an evicted pod; None if nothing is known of its eviction."""
    for done in reversed(moment.simulation.history):
        decision = done.decision
        if isinstance(decision, Evict) and decision.pod.path == path:
            claimant = decision.claimant.path if decision.claimant is not None else None
            return _told(seconds(done.at), claimant, str(decision.reason), decision.message)
    found = [each for each in map(_of_event, _events(moment, path)) if each is not None]
    if not found and past is not None:
        found = [each for each in map(_of_decision, past(path)) if each is not None]
    return found[-1] if found else None


def _told(
    at: Any, claimant: str | None, reason: str, message: str, quotas: Result | None = None
) -> Result:
    whom = f" for {claimant}" if claimant else ""
    told = {"at": at, "for": claimant, "reason": reason, "message": message}
    return {
        "reason": reason,
        "message": f"it was evicted{whom}: {message}",
        "eviction": {**told, "quotas": quotas or {}},
    }


def _of_decision(entry: Result) -> Result | None:
    """An eviction as the decision log has it, or as an event tells it."""
    if entry["what"] != "evicted":
        return None
    claimant, reason, message = entry["for"], entry["reason"], entry["message"]
    found = _OWN_WORDS.match(f"{reason}: {message}")
    if found is not None:
        claimant, reason, message = found["claimant"], found["reason"], found["message"]
    return _told(entry["at"], claimant, reason, message, entry["quotas"])


def _events(moment: Moment, path: str) -> list[Any]:
    """The events about a pod, in the order of their times."""
    found = []
    for document in moment.source.documents:
        if document.body.get("kind") != "Event":
            continue
        about = document.body.get("involvedObject") or document.body.get("regarding") or {}
        if about.get("kind") == "Pod" and f"{about.get('namespace')}/{about.get('name')}" == path:
            found.append(document.body)
    return sorted(found, key=lambda body: str(_time(body)))


def _time(event: Any) -> Any:
    last = event.get("lastTimestamp") or event.get("eventTime")
    return last or (event.get("metadata") or {}).get("creationTimestamp") or ""


def _of_event(event: Any) -> Result | None:
    reason = str(event.get("reason", ""))
    if reason not in _EVICTED and event.get("action") != "Preempting":
        return None
    message = str(event.get("message") or event.get("note") or "")
    found = _OWN_WORDS.match(message)
    if found is not None:  # as our control plane writes it
        return _told(_time(event) or None, found["claimant"], found["reason"], found["message"])
    return _told(_time(event) or None, None, reason, message)
