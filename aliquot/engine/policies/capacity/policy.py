"""KEP-9 capacity scheduling: min is guaranteed, what is idle of it may be borrowed up to max."""

from collections.abc import Iterator

from aliquot.engine.model.knobs import Knobs
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_RANKS = ((True, False), (False, False), (False, True))


class Capacity(Borrowing):
    """The policy of flat quotas with min and max."""

    def __init__(self, knobs: Knobs) -> None:
        super().__init__(knobs.capacity.borrow)

    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within min, from quotas above theirs; else, or if that finds nobody, from its own."""
        claimant = reclaim_rules.Claimant(state, claim, node_class, rights, now, self.spare)
        return reclaim_rules.ranks(claimant, _eligible_victims(claimant))


def _eligible_victims(claimant: reclaim_rules.Claimant) -> Iterator[list[Eligible]]:
    yield from reclaim_rules.reclaim_for_min(claimant, _RANKS)
    yield from reclaim_rules.preempt_in_quota(claimant)
