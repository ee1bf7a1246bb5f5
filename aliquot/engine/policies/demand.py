"""Has anybody asked for more or less, so that shares must be worked out anew?

Shared by the policies that share by request: they look before every decision, and mostly nothing
has changed.
"""

from collections.abc import Callable, Iterable

from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Demand:
    """What the shares were last worked out for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._moment: tuple[int, ...] = ()
        self._tree = -1

    def news(self, outside: Iterable[int]) -> dict[int, None] | None:
        """The quotas (by slot) whose pods ask for more or less than they did; None without news.

        What is used `outside` the shares is news, too. Not while a hold is left out of account:
        whose it is asks for as much as before.
        """
        state, ledger = self._state, self._state.ledger
        moment = (state.tree.version, state.placement.version(), state.waiting.changes)
        moved = [slot for slot in outside if slot in ledger.changed_usage]
        if ledger.exclusions or not (ledger.changed_requests or moved or moment != self._moment):
            return None
        for slot in moved:
            del ledger.changed_usage[slot]
        self._moment = moment
        asked = dict.fromkeys(ledger.changed_requests)
        ledger.changed_requests.clear()
        return asked

    def has_new_tree(self) -> bool:
        """Have quotas changed since this was last asked?"""
        before, self._tree = self._tree, self._state.tree.version
        return before != self._tree


class Unsatisfiable:
    """The sums of what is asked for in vain, by slot and row."""

    def __init__(self, state: State, is_hopeless: Callable[[State, Claim], bool]) -> None:
        self._state = state
        self._is_hopeless = is_hopeless
        self._moment = (-1, -1, -1)
        self.amounts: dict[int, dict[int, int]] = {}

    def refresh(self) -> bool:
        """Bring the sums up to date; True if they have changed."""
        state = self._state
        moment = (state.placement.version(), state.waiting.changes, state.tree.version)
        if moment == self._moment:
            return False
        self._moment = moment
        before, self.amounts = self.amounts, {}
        for claim, number in state.waiting.kinds():
            if claim.quota not in state.tree.quotas or not self._is_hopeless(state, claim):
                continue
            sums = self.amounts.setdefault(state.tree.slots[str(claim.quota)], {})
            for row, amount in claim.charge(None):
                sums[row] = sums.get(row, 0) + amount * number
        return before != self.amounts
