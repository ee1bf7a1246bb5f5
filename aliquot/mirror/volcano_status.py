"""What Volcano, and the scheduler plugins, write into queues, groups and Jobs for users to read."""

from collections import Counter
from collections.abc import Iterable, Mapping

from aliquot.dialects import amounts, jobs
from aliquot.dialects.documents import Body
from aliquot.dialects.manifest import VOLCANO_GROUP, Manifest
from aliquot.engine.objects import Gang
from aliquot.engine.reasons import Reason, Refusal
from aliquot.engine.summary import Figures, GangSummary

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
    pending, running, succeeded = (
        phases.get(phase, 0) for phase in ("Pending", "Running", "Succeeded")
    )
    fewest = jobs.fewest(manifest)
    phase = "Running" if running > 0 and fewest <= running + succeeded else "Pending"
    if succeeded >= sum(task.replicas for task in jobs.tasks(manifest)):
        phase = "Completed"
    status = {
        "state": {"phase": phase},
        "minAvailable": fewest,
        "pending": pending,
        "running": running,
        "succeeded": succeeded,
    }
    return _with_status(manifest, status)


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
