"""The phase of a gang, and why it waits, if it does.

Pending: the gates of its quota refuse it. Inqueue: they pass, but room or pods are missing.
Running: at least `minMember` pods run, counting those that have succeeded or are leaving. Unknown:
some run, but fewer. Completed: enough pods have ended, and none is left.
"""

from collections.abc import Callable

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.reasons import Reason
from aliquot.engine.model.summaries import GangSummary
from aliquot.engine.queue.claim import Claim
from aliquot.engine.report.gang_admission import Verdicts
from aliquot.engine.trial import Trial

_ROOM_OR_PODS = (
    None,
    Reason.NO_NODE_FITS,
    Reason.TOPOLOGY_UNSATISFIED,
    Reason.WAITING_FOR_VICTIMS,
    Reason.GANG_INCOMPLETE,
    Reason.SCHEDULING_GATED,
    Reason.TERMINATING,
)


def summarise_gang(
    trial: Trial, gang: Gang, claim_of: Callable[[str], Claim], verdicts: Verdicts
) -> GangSummary:
    """The gang's phase, how many of its pods run, and why it waits.

    `verdicts` are those of `gang_admission` on gangs that lack pods.
    """
    state = trial.state
    members = [state.pods[uid] for uid in state.gangs.members.get(gang.name, ())]
    placed = [pod for pod in members if state.ledger.entries[pod.uid].stage >= Stage.ASSUMED]
    waiting = [pod for pod in members if state.ledger.entries[pod.uid].stage < Stage.ASSUMED]
    done = sum(number for _, number in gang.done)
    refusal = trial.why(claim_of(waiting[0].uid)) if waiting else None
    summary = (gang.min_member, len(placed))
    if len(placed) + done >= gang.min_member and members:
        leaving = sum(not state.is_staying(pod) for pod in placed)
        return GangSummary(gang.name, "Running", *summary, leaving=leaving)
    if placed:
        return GangSummary(gang.name, "Unknown", *summary, refusal)
    if not members and 0 < gang.min_member <= done + gang.failed:
        return GangSummary(gang.name, "Completed", *summary)
    refusal = verdicts.get(gang.name) or refusal
    reason = None if refusal is None else refusal.reason
    is_owed = bool(waiting) and trial.fit.check_gates(claim_of(waiting[0].uid)) is None
    if reason in _ROOM_OR_PODS or (reason is Reason.QUEUE_OVER_DESERVED and is_owed):
        return GangSummary(gang.name, "Inqueue", *summary, refusal)
    return GangSummary(gang.name, "Pending", *summary, refusal)
