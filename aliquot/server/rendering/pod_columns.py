"""The columns of a pod as kubectl shows them: STATUS follows from the pod and its containers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aliquot.dialects.core.pods import FINISHED
from aliquot.json import Body, seek
from aliquot.server.rendering.durations import read, since

_NONE = "<none>"


@dataclass(slots=True)
class _Summary:
    """Ready containers, restarts and STATUS of a pod, as far as its containers were read."""

    status: str
    ready: int = 0
    restarts: int = 0
    last: str = ""
    running: bool = field(default=False)
    error: str = ""

    def count(self, container: Body) -> None:
        """Add the restarts of a container."""
        self.restarts += container.get("restartCount") or 0
        ended = seek(container, "lastState", "terminated", "finishedAt") or ""
        self.last = max(self.last, str(ended))


def pod_cells(pod: Body, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; IP, node, nominated node, readiness gates."""
    summary = _summary(pod)
    restarts = str(summary.restarts)
    if summary.restarts and read(summary.last) is not None:
        restarts += f" ({since(summary.last, now)} ago)"
    addresses = seek(pod, "status", "podIPs") or [{}]
    return [
        seek(pod, "metadata", "name"),
        f"{summary.ready}/{_containers(pod)}",
        summary.status,
        restarts,
        since(seek(pod, "metadata", "creationTimestamp"), now),
        addresses[0].get("ip") or seek(pod, "status", "podIP") or _NONE,
        seek(pod, "spec", "nodeName") or _NONE,
        seek(pod, "status", "nominatedNodeName") or _NONE,
        _gates(pod),
    ]


def pod_conditions(pod: Body) -> list[Body]:
    """The row condition Completed of a pod that has ended; clients may hide such rows."""
    phase = seek(pod, "status", "phase")
    if phase not in FINISHED:
        return []
    how = "completed successfully" if phase == "Succeeded" else "failed"
    message = f"The pod has {how}."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _summary(pod: Body) -> _Summary:
    summary = _Summary(seek(pod, "status", "reason") or seek(pod, "status", "phase") or "")
    for each in seek(pod, "status", "conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            summary.status = "SchedulingGated"
    if not _starting(pod, summary) or _is_true(pod, "Initialized"):
        _read_containers(pod, summary)
    if seek(pod, "metadata", "deletionTimestamp"):
        if seek(pod, "status", "reason") == "NodeLost":
            summary.status = "Unknown"
        elif seek(pod, "status", "phase") not in FINISHED:
            summary.status = "Terminating"
    return summary


def _starting(pod: Body, summary: _Summary) -> bool:
    """Are init containers not done? Sidecars that have started count as containers."""
    sidecars = set(_sidecars(pod))
    inits = seek(pod, "spec", "initContainers") or []
    for index, status in enumerate(seek(pod, "status", "initContainerStatuses") or ()):
        ended, waiting = seek(status, "state", "terminated"), seek(status, "state", "waiting")
        is_sidecar = status.get("name") in sidecars
        summary.count(status)
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            summary.ready += bool(status.get("ready"))
            continue
        if ended is not None:
            summary.status = f"Init:{_ending(ended)}"
        elif seek(waiting, "reason") not in (None, "", "PodInitializing"):
            summary.status = f"Init:{seek(waiting, 'reason')}"
        else:
            summary.status = f"Init:{index}/{len(inits)}"
        return True
    return False


def _read_containers(pod: Body, summary: _Summary) -> None:
    sidecars = set(_sidecars(pod))
    summary.restarts, summary.last = 0, ""
    for status in seek(pod, "status", "initContainerStatuses") or ():
        if status.get("name") in sidecars:
            summary.count(status)
    for status in reversed(seek(pod, "status", "containerStatuses") or []):
        summary.count(status)
        _read_container(status, summary)
    if summary.status == "Completed":
        if summary.running and _is_true(pod, "Ready"):
            summary.status = "Running"
        elif summary.error:
            summary.status = summary.error
        elif summary.running:
            summary.status = "NotReady"


def _read_container(status: Body, summary: _Summary) -> None:
    ended, waiting = seek(status, "state", "terminated"), seek(status, "state", "waiting")
    if seek(waiting, "reason"):
        summary.status = str(seek(waiting, "reason"))
    elif ended is not None:
        summary.status = _ending(ended)
        if ended.get("exitCode"):
            summary.error = summary.status
    elif status.get("ready") and seek(status, "state", "running") is not None:
        summary.running = True
        summary.ready += 1


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
