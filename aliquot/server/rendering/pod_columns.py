"""What kubectl shows of a pod: how far it is, in one word that its containers have a say in."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aliquot.json import Body, seek
from aliquot.server.rendering.durations import read, since

_NONE = "<none>"
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Sight:
    """What has been seen of a pod so far."""

    word: str
    ready: int = 0
    restarts: int = 0
    last: str = ""
    running: bool = field(default=False)
    error: str = ""

    def count(self, status: Body) -> None:
        """Add the restarts of a container."""
        self.restarts += status.get("restartCount") or 0
        ended = seek(status, "lastState", "terminated", "finishedAt") or ""
        self.last = max(self.last, str(ended))


def pod_cells(pod: Body, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; IP, node, nominated node, readiness gates."""
    sight = _seen(pod)
    restarts = str(sight.restarts)
    if sight.restarts and read(sight.last) is not None:
        restarts += f" ({since(sight.last, now)} ago)"
    addresses = seek(pod, "status", "podIPs") or [{}]
    return [
        seek(pod, "metadata", "name"),
        f"{sight.ready}/{_containers(pod)}",
        sight.word,
        restarts,
        since(seek(pod, "metadata", "creationTimestamp"), now),
        addresses[0].get("ip") or seek(pod, "status", "podIP") or _NONE,
        seek(pod, "spec", "nodeName") or _NONE,
        seek(pod, "status", "nominatedNodeName") or _NONE,
        _gates(pod),
    ]


def pod_conditions(pod: Body) -> list[Body]:
    """That a pod has ended, for those who would rather not see it."""
    phase = seek(pod, "status", "phase")
    if phase not in _ENDED:
        return []
    how = "completed successfully" if phase == "Succeeded" else "failed"
    message = f"The pod has {how}."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _seen(pod: Body) -> _Sight:
    sight = _Sight(seek(pod, "status", "reason") or seek(pod, "status", "phase") or "")
    for each in seek(pod, "status", "conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            sight.word = "SchedulingGated"
    if not _starting(pod, sight) or _is_true(pod, "Initialized"):
        _look_at_containers(pod, sight)
    if seek(pod, "metadata", "deletionTimestamp"):
        if seek(pod, "status", "reason") == "NodeLost":
            sight.word = "Unknown"
        elif seek(pod, "status", "phase") not in _ENDED:
            sight.word = "Terminating"
    return sight


def _starting(pod: Body, sight: _Sight) -> bool:
    """Are init containers still at it? Sidecars stay, and are counted like the others."""
    sidecars = set(_sidecars(pod))
    inits = seek(pod, "spec", "initContainers") or []
    for index, status in enumerate(seek(pod, "status", "initContainerStatuses") or ()):
        ended, waiting = seek(status, "state", "terminated"), seek(status, "state", "waiting")
        is_sidecar = status.get("name") in sidecars
        sight.count(status)
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            sight.ready += bool(status.get("ready"))
            continue
        if ended is not None:
            sight.word = f"Init:{_ending(ended)}"
        elif seek(waiting, "reason") not in (None, "", "PodInitializing"):
            sight.word = f"Init:{seek(waiting, 'reason')}"
        else:
            sight.word = f"Init:{index}/{len(inits)}"
        return True
    return False


def _look_at_containers(pod: Body, sight: _Sight) -> None:
    sidecars = set(_sidecars(pod))
    sight.restarts, sight.last = 0, ""
    for status in seek(pod, "status", "initContainerStatuses") or ():
        if status.get("name") in sidecars:
            sight.count(status)
    for status in reversed(seek(pod, "status", "containerStatuses") or []):
        sight.count(status)
        _look_at(status, sight)
    if sight.word == "Completed":
        if sight.running and _is_true(pod, "Ready"):
            sight.word = "Running"
        elif sight.error:
            sight.word = sight.error
        elif sight.running:
            sight.word = "NotReady"


def _look_at(status: Body, sight: _Sight) -> None:
    ended, waiting = seek(status, "state", "terminated"), seek(status, "state", "waiting")
    if seek(waiting, "reason"):
        sight.word = str(seek(waiting, "reason"))
    elif ended is not None:
        sight.word = _ending(ended)
        if ended.get("exitCode"):
            sight.error = sight.word
    elif status.get("ready") and seek(status, "state", "running") is not None:
        sight.running = True
        sight.ready += 1


def _ending(ended: Body) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _containers(pod: Body) -> int:
    return len(seek(pod, "spec", "containers") or ()) + len(list(_sidecars(pod)))


def _sidecars(pod: Body) -> Iterator[str]:
    for each in seek(pod, "spec", "initContainers") or ():
        if each.get("restartPolicy") == "Always":
            yield each.get("name") or ""


def _gates(pod: Body) -> str:
    gates = seek(pod, "spec", "readinessGates") or ()
    if not gates:
        return _NONE
    return f"{sum(_is_true(pod, each.get('conditionType')) for each in gates)}/{len(gates)}"


def _is_true(pod: Body, kind: object) -> bool:
    conditions = seek(pod, "status", "conditions") or ()
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)
