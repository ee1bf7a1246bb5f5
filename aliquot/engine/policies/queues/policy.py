"""Volcano queues: each queue may use what it deserves, and its namespaces share that by weight."""

from collections.abc import Iterator

from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.policies.interface import Policy, Reclaim
from aliquot.engine.policies.queues import reclaim
from aliquot.engine.policies.queues.claimant import QueueClaimant
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.gates import QueueGates
from aliquot.engine.policies.queues.preemption import QueuePreemption
from aliquot.engine.policies.queues.report import QueueReport
from aliquot.engine.policies.queues.turns import QueueTurns
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


def queues(state: State) -> Policy:
    """The policy of queues."""
    shares, drf = CurrentShares(state, Deserved(state)), DominantShares(state)
    gates = QueueGates(state, shares)
    bands = state.knobs.queues.priority_bands
    return Policy(
        gates,
        QueueReclaim(state, shares, drf, gates, bands),
        QueueReport(state, shares, drf),
        QueueTurns(state, shares, drf, bands),
    )


class QueueReclaim(Reclaim):
    """Which pods of queues may be evicted.

    A claim reclaims from queues above deserved only if its own queue ends within deserved (see
    `reclaim`); inside its queue, victims are found by the order of turns read backwards (see
    `preemption`).
    """

    preempts_equals = True

    def __init__(
        self,
        state: State,
        shares: CurrentShares[Deserved],
        drf: DominantShares,
        gates: QueueGates,
        priority_bands: bool,
    ) -> None:
        self._state = state
        self._shares = shares
        self._drf = drf
        self._gates = gates
        self._priority_bands = priority_bands

    def eligible_victims(
        self, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within deserved, pods of queues above theirs; then pods of its own queue."""
        claimant = reclaim_rules.Claimant(
            self._state, claim, node_class, rights, now, lambda *_: LIMIT
        )
        return reclaim_rules.ranks(claimant, self._eligible_victims(claimant, node_class))

    def _eligible_victims(
        self, claimant: reclaim_rules.Claimant, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        if self._gates.admission_gate(claimant.claim, node_class) is not None:
            return
        queue_claimant = QueueClaimant(claimant, node_class, self._shares.read(), self._drf)
        yield from reclaim.eligible_victims(queue_claimant)
        yield from QueuePreemption(queue_claimant, self._priority_bands).eligible_victims()
