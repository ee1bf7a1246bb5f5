"""What Volcano, and the scheduler plugins, write into queues, groups and Jobs for users to read."""

from collections import Counter
from collections.abc import Iterable, Mapping

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Manifest
from aliquot.dialects.volcano import jobs
from aliquot.engine import Figures, Gang, GangSummary, Reason, Refusal
from aliquot.json import Body

_PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_PLUGIN_PHASES = {"Inqueue": "Scheduling", "Completed": "Finished"}
"""What the scheduler plugins call a phase, where it is another word."""

_STARTED = "enough pods of the gang have started"
_CONDITIONS = ("Scheduled", "Unschedulable")


def queue(manifest: Manifest, used: Figures, gangs: Iterable[GangSummary]) -> Body:
    """A queue says what its pods hold, how its gangs stand, and that it is open unless closed."""
    held = {name: amount for name, amount in used.items() if amount}
    count = Counter[str](each.phase for each in gangs)
    counters = {phase.lower(): count[phase] for phase in _PHASES}
    return _with_status(manifest, {"allocated": amounts.write(held), **counters}, state="Open")


def group(manifest: Manifest, gang: Gang, summary: GangSummary) -> Body:
    """A group says how it stands, and Volcano's why it does not start."""
    ended = {"succeeded": sum(number for _, number in gang.done), "failed": gang.failed}
    if manifest.group != VOLCANO_GROUP:
        phase = _PLUGIN_PHASES.get(summary.phase, summary.phase)
        running = {"scheduled": summary.running, "running": summary.running}
        return _with_status(manifest, {"phase": phase, **running, **ended})
    written = (manifest.body.get("status") or {}).get("conditions") or []
    others = [each for each in written if each.get("type") not in _CONDITIONS]
    status = {
        "phase": summary.phase,
        "conditions": [*others, *_conditions(summary)],
        "running": summary.running,
        **ended,
    }
    return _with_status(manifest, status)


def job(manifest: Manifest, phases: Mapping[str, int]) -> Body:
    """A Job says how many of its pods are in which phase, and what that makes of it."""
    words = ("Pending", "Running", "Succeeded", "Failed")
    pending, running, succeeded, failed = (phases.get(word, 0) for word in words)
    status = {
        "state": {"phase": _phase(manifest, pending, running, succeeded, failed)},
        "minAvailable": jobs.fewest(manifest),
        "pending": pending,
        "running": running,
        "succeeded": succeeded,
    }
    if failed or "failed" in (manifest.body.get("status") or {}):
        status["failed"] = failed
    return _with_status(manifest, status)


def _phase(manifest: Manifest, pending: int, running: int, succeeded: int, failed: int) -> str:
    """How far a Job is. One whose pods have all ended has failed if too few did so well.

    One that wants no pods yet is not done: it may be scaled up.
    """
    fewest = jobs.fewest(manifest)
    total = sum(task.replicas for task in jobs.tasks(manifest))
    if total and succeeded >= total:
        return "Completed"
    if total and not pending and not running and succeeded + failed >= total:
        return "Completed" if succeeded >= fewest else "Failed"
    return "Running" if running and running + succeeded >= fewest else "Pending"


def _conditions(summary: GangSummary) -> list[Body]:
    if summary.refusal is not None:
        return [_unschedulable(summary.refusal)]
    if summary.phase == "Running":
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
    """The object with this in its status, beside what else is written there."""
    written = manifest.body.get("status") or {}
    return {**manifest.body, "status": {**unless_written, **written, **status}}
