"""Owed first: quotas take turns, those whose first claim is within min before those that borrow.

Otherwise a claim that borrows could start where a waiting claim within min would evict it at once.
Inside a quota, and among quotas alike, claims come by priority, then age.
"""

from collections.abc import Iterable

from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.interface import Turns
from aliquot.engine.policies.usage import staying
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State

LAST = 3
"""The turn of claims whose start was withdrawn."""


class OwedFirst(Turns):
    """Quotas whose first claim is owed come before those whose first claim would borrow."""

    def __init__(self, state: State, borrowing: Borrowing) -> None:
        self._state = state
        self._borrowing = borrowing
        self._withdrawn: set[str] = set()
        """The claims whose start was withdrawn in this cycle."""

    def begin(self) -> None:
        """Begin a cycle: no start was withdrawn yet."""
        self._withdrawn.clear()

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's quota; claims of it whose start was withdrawn are a group of their own."""
        return ((claim.quota, claim.uid in self._withdrawn),)

    def turn(self, group: Group, claim: Claim) -> object:
        """0 for a claim within min, or without a quota, which borrows nothing; else 1.

        A claim in this queue whose quota was deleted is in another group by now. One whose start
        was withdrawn comes last.
        """
        if claim.uid in self._withdrawn:
            return LAST
        if claim.quota not in self._state.tree.quotas:
            return 0
        return int(not self._borrowing.is_owed(claim))

    def withdrawn(self, claim: Claim) -> None:
        """The claim comes last in this cycle."""
        self._withdrawn.add(claim.uid)

    def takes_back_from(self, claim: Claim, quotas: Iterable[str]) -> set[str]:
        """A claim within min takes back from quotas above theirs."""
        if not self._borrowing.is_owed(claim):
            return set()
        return {quota for quota in quotas if self._is_above_min(claim, quota)}

    def _is_above_min(self, claim: Claim, quota: str) -> bool:
        """Does a quota use more than its min of anything that the claim asks for?"""
        state, slot = self._state, self._state.tree.slots[quota]
        return any(
            staying(state, row, slot) > state.tree.min.get(row, slot)
            for row, _ in claim.charge(None)
            if state.tree.guaranteed(row) is not None
        )
