"""Reclaim by min: from quotas above theirs, wherever their pods run; then by priority in the quota.

A claim within its quota's min reclaims from quotas above theirs, down to their floor. A claim that
borrows, or for which that finds no victims, preempts lower-priority pods of its own quota.
"""

from collections.abc import Iterator

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Eligible, Mask, Rights
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.usage import within_min
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_RANKS = ((True, False), (False, False), (False, True))
"""Over-quota pods first, then any pods, both down to min; at last any pods down to the floor."""


class MinReclaim(reclaim_rules.RankedReclaim):
    """Which pods may be evicted where quotas lend their idle min."""

    def __init__(self, state: State, borrowing: Borrowing) -> None:
        self._state = state
        self._gates = self._borrowing = borrowing

    def by_rank(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """Within min, pods of quotas above theirs; then lower-priority pods of its own quota."""
        yield from reclaim_rules.reclaim_for_min(claimant, _RANKS)
        yield from reclaim_rules.preempt_in_quota(claimant)

    def may_reclaim(self, claim: Claim, row: int) -> bool:
        """Not if its quota would be above the min that it has of this resource."""
        tree, quota, amounts = self._state.tree, str(claim.quota), dict(claim.charge(None))
        named = tree.names(tree.slots[quota], row)
        return not named or within_min(self._state, quota, row, amounts[row])

    def borrowers(self, row: int) -> set[int] | None:
        """The accounts that use more than their min of this resource."""
        tree, used = self._state.tree, self._state.ledger.used.data[row]
        above = set(np.flatnonzero((used > tree.min.data[row]) | (used >= LIMIT)).tolist())
        return above - {tree.slots[ROOT], tree.slots[OUTSIDE]}

    def owed_shortages(self, claimant: Claimant, node_class: str | None) -> dict[Rows, Mask]:
        """Where the claim's quota's min covers what it is short of."""
        return reclaim_rules.owed_by_min(claimant)

    def spare(self, quota: str, row: int) -> int:
        """What a quota can use without being reclaimed from at once."""
        return self._borrowing.spare(quota, row)

    def excess(self, quota: str) -> Rights:
        """What a quota borrows although all quotas together are above the sum of min."""
        return self._borrowing.excess(quota)
