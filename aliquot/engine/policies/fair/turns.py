"""Owed first, then what fair sharing would give a claim anyway, then what it would take back.

A claim above min that stays within its quota's guaranteed share of the idle min may preempt pods
of quotas beyond theirs. So it is tried before the claims that would take their quotas beyond it.
"""

from collections.abc import Iterable

from aliquot.engine.policies.capacity.turns import OwedFirst
from aliquot.engine.policies.fair.guaranteed import GuaranteedShares
from aliquot.engine.policies.usage import staying
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group


class FairTurns(OwedFirst):
    """Quotas whose first claim is owed, then those within their share, then those beyond it."""

    def turn(self, group: Group, claim: Claim) -> object:
        """0 for a claim within min, 1 within its quota's share of what is idle, else 2."""
        turn = super().turn(group, claim)
        if turn != 1:
            return turn
        return 1 if self._is_within_share(claim, count_waiting=True) else 2

    def takes_back_from(self, claim: Claim, quotas: Iterable[str]) -> set[str]:
        """As `capacity`; and a claim within its share takes back from quotas beyond theirs."""
        quotas = list(quotas)
        found = super().takes_back_from(claim, quotas)
        if len(found) < len(quotas) and self._is_within_share(claim):
            found.update(quota for quota in quotas if self._is_beyond_share(claim, quota))
        return found

    def _spare(self, quota: str, row: int) -> int:
        """As `capacity`, and at least its share once waiting pods use their quotas' min."""
        shares = GuaranteedShares(self._state, row, count_waiting=True)
        return max(super()._spare(quota, row), shares.entitlement(quota))

    def _is_within_share(self, claim: Claim, count_waiting: bool = False) -> bool:
        """Would the claim's quota stay within min and its share of what is idle?"""
        assert claim.quota is not None
        state, slot = self._state, self._state.tree.slots[claim.quota]
        return all(
            staying(state, row, slot) + amount
            <= GuaranteedShares(state, row, count_waiting).entitlement(claim.quota)
            for row, amount in claim.charge(None)
            if state.tree.guaranteed(row) is not None
        )

    def _is_beyond_share(self, claim: Claim, quota: str) -> bool:
        """Does a quota use more than min and its share of anything that the claim asks for?"""
        state, slot = self._state, self._state.tree.slots[quota]
        return any(
            staying(state, row, slot) > GuaranteedShares(state, row).entitlement(quota)
            for row, _ in claim.charge(None)
            if state.tree.guaranteed(row) is not None
        )
