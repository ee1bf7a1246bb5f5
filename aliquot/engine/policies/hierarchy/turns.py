"""Turns of quotas: the one that uses the smaller part of its runtime comes first.

By its dominant resource. A quota is ranked when the cycle begins, and again when its own usage has
changed, each time by the runtime of that moment. Inside a quota, claims come by priority, then age.
"""

from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.interface import Turns
from aliquot.engine.policies.shares import CurrentShares, dominant_ratio
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State


class HierarchyTurns(Turns):
    """Quotas take turns by used / runtime."""

    def __init__(self, state: State, shares: CurrentShares[Shares]) -> None:
        self._state = state
        self._shares = shares.book
        self._usage = state.changes.usage.cursor()
        self._ratios: dict[int, int] = {}
        """Used / runtime of each quota, by slot, until its usage changes."""

    def begin(self) -> None:
        """Runtimes may have changed: work all ratios out anew."""
        self._ratios.clear()
        self._usage.read()

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's quota."""
        return (claim.quota,)

    def turn(self, group: Group, claim: Claim) -> object:
        """Used / runtime of the claim's quota."""
        shares, tree = self._shares, self._state.tree
        if claim.quota not in tree.quotas:
            return 0
        slot = tree.slots[claim.quota]
        if slot not in shares.sharing:
            return 0
        for changed in self._usage.read():
            self._ratios.pop(changed, None)
        found = self._ratios.get(slot)
        if found is None:
            found = self._ratios[slot] = dominant_ratio(shares, shares.account(slot))
        return found
