"""How a gang stands: its phase, and why it waits, if it does.

Pending: the rules of its quota refuse it. Inqueue: they do not, but room or pods are missing.
Running: as many run as start together, those counted that have ended well, or are about to leave.
Unknown: some run, but fewer. Completed: enough of them have ended, and nobody is left.
"""

from collections.abc import Iterator

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.model.summaries import GangSummary
from aliquot.engine.trial import Trial

_ROOM_OR_PODS = (
    None,
    Reason.NO_NODE_FITS,
    Reason.WAITING_FOR_VICTIMS,
    Reason.GANG_INCOMPLETE,
    Reason.SCHEDULING_GATED,
    Reason.TERMINATING,
)


def standing(trial: Trial, gang: Gang) -> GangSummary:
    """How it stands now."""
    state = trial.state
    members = [state.pods[uid] for uid in state.gangs.members.get(gang.name, ())]
    placed = [pod for pod in members if state.ledger.entries[pod.uid].stage >= Stage.ASSUMED]
    waiting = [pod for pod in members if pod.uid in state.waiting]
    done = sum(number for _, number in gang.done)
    refusal = trial.why(state.waiting.claim(waiting[0].uid)) if waiting else None
    summary = (gang.min_member, len(placed))
    if len(placed) + done >= gang.min_member and members:
        return GangSummary(gang.name, "Running", *summary)
    if placed:
        return GangSummary(gang.name, "Unknown", *summary, refusal)
    if not members and 0 < gang.min_member <= done + gang.failed:
        return GangSummary(gang.name, "Completed", *summary)
    refusal = next(_before_its_pods(trial, gang), refusal)
    reason = None if refusal is None else refusal.reason
    if reason in _ROOM_OR_PODS:
        return GangSummary(gang.name, "Inqueue", *summary, refusal)
    return GangSummary(gang.name, "Pending", *summary, refusal)


def _before_its_pods(trial: Trial, gang: Gang) -> Iterator[Refusal]:
    """Would the rules of its quota refuse what it asks for before all of its pods are there?"""
    state = trial.state
    members = state.gangs.members.get(gang.name, ())
    done = sum(number for _, number in gang.done)
    if len(members) + done >= gang.min_member:
        return
    namespace, _, name = gang.name.partition("/")
    shape = Shape(gang.min_resources)
    stands_for_all = Pod(f"<{gang.name}>", namespace, name, shape, quota=gang.quota)
    refusal = trial.right(state.claims.of((stands_for_all,)))
    if refusal is not None:
        yield refusal
