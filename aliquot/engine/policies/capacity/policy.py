"""KEP-9 capacity scheduling: min is guaranteed, and idle min may be borrowed up to max.

A claim may start while its quota stays within max and all quotas together stay within the sum of
min. Claims come by priority, then age. A claim within its quota's min reclaims from quotas above
theirs, down to their floor, wherever their pods run. A claim that borrows, or for which that finds
no victims, preempts lower-priority pods of its own quota.
"""

from collections.abc import Iterator

from aliquot.engine.model.knobs import Knobs
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_RANKS = ((True, False), (False, False), (False, True))
"""Over-quota pods first, then any pods, both down to min; at last any pods down to the floor."""


class Capacity(Borrowing):
    """The policy of flat quotas with min and max."""

    def __init__(self, knobs: Knobs) -> None:
        super().__init__(knobs.capacity.borrow)

    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within min, pods of quotas above theirs; then lower-priority pods of its own quota."""
        claimant = reclaim_rules.Claimant(state, claim, node_class, rights, now, self.spare)
        return reclaim_rules.ranks(claimant, _eligible_victims(claimant))


def _eligible_victims(claimant: reclaim_rules.Claimant) -> Iterator[list[Eligible]]:
    yield from reclaim_rules.reclaim_for_min(claimant, _RANKS)
    yield from reclaim_rules.preempt_in_quota(claimant)
