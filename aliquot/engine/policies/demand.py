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
        self._seen: tuple[int, ...] = ()
        self._tree = -1

    def changed_quotas(self, outside: Iterable[int]) -> dict[int, None] | None:
        """The quotas (by slot) whose pods ask for more or less than they did; None without news.

        What is used `outside` the shares is news, too. Not while a hold is left out of account:
        whose it is asks for as much as before.
        """
        state, ledger = self._state, self._state.ledger
        now_seen = (state.tree.version, state.placement.version(), state.waiting.changes)
        moved = [slot for slot in outside if slot in ledger.moved]
        if ledger.lifting or not (ledger.asked or moved or now_seen != self._seen):
            return None
        for slot in moved:
            del ledger.moved[slot]
        self._seen = now_seen
        asked = dict.fromkeys(ledger.asked)
        ledger.asked.clear()
        return asked

    def tree_changed(self) -> bool:
        """Have quotas changed since this was last asked?"""
        before, self._tree = self._tree, self._state.tree.version
        return before != self._tree


class Unsatisfiable:
    """The sums of what is asked for in vain, by slot and row."""

    def __init__(self, state: State, is_unsatisfiable: Callable[[State, Claim], bool]) -> None:
        self._state = state
        self._is_unsatisfiable = is_unsatisfiable
        self._seen = (-1, -1, -1)
        self.amounts: dict[int, dict[int, int]] = {}

    def refresh(self) -> bool:
        """Bring the sums up to date; True if they have changed."""
        state = self._state
        now_seen = (state.placement.version(), state.waiting.changes, state.tree.version)
        if now_seen == self._seen:
            return False
        self._seen = now_seen
        before, self.amounts = self.amounts, {}
        for claim, number in state.waiting.kinds():
            if claim.quota not in state.tree.quotas or not self._is_unsatisfiable(state, claim):
                continue
            sums = self.amounts.setdefault(state.tree.slots[str(claim.quota)], {})
            for row, amount in claim.charge(None):
                sums[row] = sums.get(row, 0) + amount * number
        return before != self.amounts
