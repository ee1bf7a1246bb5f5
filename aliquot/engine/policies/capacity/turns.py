"""Owed first: quotas take turns, those whose first claim is within min before those that borrow.

Otherwise a claim that borrows could start where a waiting claim within min would evict it at once.
Inside a quota, and among quotas alike, claims come by priority, then age.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.interface import Turns
from aliquot.engine.policies.usage import staying
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State

LAST = 2
"""The last turn of claims whose start was not withdrawn; those withdrawn least often follow."""


class OwedFirst(Turns):
    """Quotas whose first claim is owed come before those whose first claim would borrow."""

    def __init__(self, state: State, borrowing: Borrowing) -> None:
        self._state = state
        self._borrowing = borrowing
        self._withdrawn: Counter[str] = Counter()
        """How often a claim's start was withdrawn in this cycle."""

    def handed_out(self) -> None:
        """No start was withdrawn yet of what follows."""
        self._withdrawn.clear()

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's quota; claims of it whose start was withdrawn are a group of their own."""
        return ((claim.quota, self._withdrawn.get(claim.uid, 0)),)

    def turn(self, group: Group, claim: Claim) -> object:
        """0 for a claim within min, or without a quota, which borrows nothing; else 1.

        A claim in this queue whose quota was deleted is in another group by now. One whose start
        was withdrawn comes last, and later each time.
        """
        times = self._withdrawn.get(claim.uid)
        if times:
            return LAST + times
        if claim.quota not in self._state.tree.quotas:
            return 0
        return int(not self._borrowing.is_owed(claim))

    def withdrawn(self, claim: Claim) -> None:
        """The claim comes last in this cycle, behind those for which it was withdrawn."""
        self._withdrawn[claim.uid] += 1

    def borrows(self, quota: str) -> bool:
        """Does the quota use more than its min of anything?"""
        state, slot = self._state, self._state.tree.slots[quota]
        return any(
            staying(state, row, slot) > state.tree.min.get(row, slot)
            for row in state.tree.guaranteed_rows()
        )

    def takes_back_from(self, claim: Claim, quotas: Iterable[str]) -> set[str]:
        """A claim within min takes back from quotas above theirs."""
        if not self._borrowing.is_owed(claim):
            return set()
        state, slots = self._state, self._state.tree.slots
        above = np.zeros(state.ledger.used.width, dtype=bool)
        for row, _ in claim.charge(None):
            if state.tree.guaranteed(row) is not None:
                staying = state.ledger.used.data[row] - state.leaving.charge.data[row]
                above |= staying > state.tree.min.data[row]
        return {quota for quota in quotas if above.item(slots[quota])}

    def may_replace(self, claim: Claim, freed: Mapping[int, int]) -> bool:
        """Not if its quota would grow beyond what it could keep: it would give back at once."""
        assert claim.quota is not None
        state, slot = self._state, self._state.tree.slots[claim.quota]
        for row, amount in claim.charge(None):
            if state.tree.guaranteed(row) is not None:
                before = staying(state, row, slot)
                if before - freed.get(row, 0) + amount > max(before, self._spare(claim.quota, row)):
                    return False
        return True

    def _spare(self, quota: str, row: int) -> int:
        """What a quota can use without being reclaimed from at once."""
        return self._borrowing.spare(quota, row)
