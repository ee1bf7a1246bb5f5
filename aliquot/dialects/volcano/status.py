"""The statuses of Queues, PodGroups and Jobs, as Volcano and the scheduler plugins write them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Manifest
from aliquot.dialects.volcano import jobs
from aliquot.engine import Figures, Gang, GangSummary, Reason, Refusal
from aliquot.json import Body

_PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_PLUGIN_PHASES = {"Inqueue": "Scheduling", "Completed": "Finished"}
"""The scheduler plugins' names of phases, where they differ from Volcano's."""

_STARTED = "enough pods of the gang have started"
_CONDITIONS = ("Scheduled", "Unschedulable")


def queue(manifest: Manifest, used: Figures, gangs: Iterable[GangSummary]) -> Body:
    """A queue with what its pods use, how many gangs are in which phase, and its state."""
    held = {name: amount for name, amount in used.items() if amount}
    count = Counter[str](each.phase for each in gangs)
    counters = {phase.lower(): count[phase] for phase in _PHASES}
    return _with_status(manifest, {"allocated": amounts.write(held), **counters}, state="Open")


def group(manifest: Manifest, gang: Gang, summary: GangSummary) -> Body:
    """A PodGroup with its phase and counts; one of Volcano's also with why it does not start."""
    ended = {"succeeded": sum(number for _, number in gang.done), "failed": gang.failed}
    if manifest.group != VOLCANO_GROUP:
        phase = _PLUGIN_PHASES.get(summary.phase, summary.phase)
        staying = summary.running - summary.leaving
        running = {"scheduled": staying, "running": summary.running}
        return _with_status(manifest, {"phase": phase, **running, **ended})
    written = (manifest.body.get("status") or {}).get("conditions") or []
    others = [each for each in written if each.get("type") not in _CONDITIONS]
    status = {
        "phase": summary.phase,
        "conditions": [*others, *_conditions(gang, summary)],
        "running": summary.running,
        **ended,
    }
    return _with_status(manifest, status)


def job(manifest: Manifest, phases: Mapping[str, int]) -> Body:
    """A Job with the number of its pods in each phase, and its own phase."""
    words = ("Pending", "Running", "Succeeded", "Failed")
    pending, running, succeeded, failed = (phases.get(word, 0) for word in words)
    status = {
        "state": {"phase": _phase(manifest, pending, running, succeeded, failed)},
        "minAvailable": jobs.min_available(manifest),
        "pending": pending,
        "running": running,
        "succeeded": succeeded,
    }
    if failed or "failed" in (manifest.body.get("status") or {}):
        status["failed"] = failed
    return _with_status(manifest, status)


def _phase(manifest: Manifest, pending: int, running: int, succeeded: int, failed: int) -> str:
    """The phase of a Job. When all pods have ended, fewer than minAvailable successes is Failed.

    A Job of no replicas is Pending, not Completed: it may be scaled up.
    """
    min_available = jobs.min_available(manifest)
    total = sum(task.replicas for task in jobs.tasks(manifest))
    if total and succeeded >= total:
        return "Completed"
    if total and not pending and not running and succeeded + failed >= total:
        return "Completed" if succeeded >= min_available else "Failed"
    return "Running" if running and running + succeeded >= min_available else "Pending"


def _conditions(gang: Gang, summary: GangSummary) -> list[Body]:
    """Why it does not start, or that enough of its pods run; neither while too many are leaving."""
    if summary.refusal is not None:
        return [_unschedulable(summary.refusal)]
    staying = summary.running - summary.leaving + sum(number for _, number in gang.done)
    if summary.phase == "Running" and staying >= gang.min_member:
        return [{"type": "Scheduled", "status": "True", "reason": _STARTED}]
    return []


def _unschedulable(refusal: Refusal) -> Body:
    incomplete = refusal.reason == Reason.GANG_INCOMPLETE
    return {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughTasks" if incomplete else "NotEnoughResources",
        "message": refusal.message,
    }


def _with_status(manifest: Manifest, status: Body, **unless_written: str) -> Body:
    """The object with these fields in its status; its other fields stay."""
    written = manifest.body.get("status") or {}
    return {**manifest.body, "status": {**unless_written, **written, **status}}
