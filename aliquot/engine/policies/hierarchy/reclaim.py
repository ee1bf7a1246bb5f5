"""Reclaim in quota trees: from quotas above runtime, and by priority inside a quota.

A claim within its quota's runtime takes from other quotas what they use above theirs: surplus at
once, the rest once they have been above it for `revokeAfter` (see `recycling`). Any claim preempts
lower-priority pods of its own quota.
"""

from collections.abc import Iterator

from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.knobs import HierarchyKnobs
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Eligible
from aliquot.engine.policies.hierarchy.gates import HierarchyGates
from aliquot.engine.policies.hierarchy.recycling import Recycling
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class HierarchyReclaim(reclaim_rules.RankedReclaim):
    """Which pods of a quota tree may be evicted."""

    _gates: HierarchyGates
    max_reason = Reason.RECYCLED

    def __init__(
        self,
        state: State,
        shares: CurrentShares[Shares],
        gates: HierarchyGates,
        knobs: HierarchyKnobs,
    ) -> None:
        self._state = state
        self._shares = shares
        self._gates = gates
        self._recycling = Recycling(knobs)

    def begin(self, now: int) -> None:
        """Note the quotas above runtime."""
        self._recycling.note_overuse(self._state, self._shares.read(), now)

    def deadline(self) -> int | None:
        """When a quota will have been above its runtime for long enough, and it matters."""
        return self._recycling.deadline(self._state)

    def recycle(self, now: int) -> list[Evict]:
        """With `recycle: always`, evictions from quotas above runtime for `revokeAfter`."""
        shares, shields = self._shares.read(), self._gates.shields
        return self._recycling.recycle(self._state, shares, shields, now)

    def started_on_idle(self, claim: Claim) -> None:
        """Its pods are surplus: the first victims of a claim within its quota's runtime."""
        self._recycling.note_surplus(claim.uids())

    def by_rank(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """Within runtime, pods of quotas above theirs; then lower-priority pods of its own."""
        claim = claimant.claim
        if self._gates.admission_gate(claim, node_class) is not None:
            return
        if self._gates.is_within_runtime(claim, node_class):
            yield from self._recycling.eligible_victims(claimant, self._shares.read(), node_class)
        if not self._state.tree.quotas[claimant.quota].fallback:
            yield from reclaim_rules.preempt_in_quota(claimant)

    def explain_no_victims(self, claim: Claim, refusal: Refusal, now: int) -> str:
        """Which quota above runtime will be recycled, and when, if the claim is within its own."""
        if not self._gates.is_within_runtime(claim, None):
            return ""
        return self._recycling.next_recycling(self._state, now)
