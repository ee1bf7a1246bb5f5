"""Owed first: quotas take turns, those whose first claim is within min before those that borrow.

Otherwise a claim that borrows could start where a waiting claim within min would evict it at once.
Inside a quota, and among quotas alike, claims come by priority, then age.
"""

from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.interface import Turns
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State


class OwedFirst(Turns):
    """Quotas whose first claim is owed come before those whose first claim would borrow."""

    def __init__(self, state: State, borrowing: Borrowing) -> None:
        self._state = state
        self._borrowing = borrowing

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's quota."""
        return (claim.quota,)

    def turn(self, group: Group, claim: Claim) -> object:
        """0 for a claim within min, or without a quota, which borrows nothing; else 1.

        A claim in this queue whose quota was deleted is in another group by now.
        """
        if claim.quota not in self._state.tree.quotas:
            return 0
        return int(not self._borrowing.is_owed(claim))
