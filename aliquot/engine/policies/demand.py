"""Changes of demand: must the shares of the quotas be worked out anew?

For the policies that share by request (`hierarchy`, `queues`). They check before every decision,
and mostly nothing has changed, so the check must be cheap.
"""

from collections.abc import Callable, Iterable

from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Demand:
    """The versions of the books that the shares were last worked out for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._seen: tuple[int, ...] = ()
        self._tree = -1

    def changed_quotas(self, outside: Iterable[int]) -> dict[int, None] | None:
        """The quotas (by slot) whose request has changed; None if nothing has changed at all.

        A change of use in the slots `outside` the shares counts as well. While a nomination is set
        aside for a trial, nothing counts as changed: its claim requests as much as before.
        """
        state, ledger = self._state, self._state.ledger
        now_seen = (state.tree.version, state.placement.version(), state.waiting.changes)
        moved = [slot for slot in outside if slot in ledger.changed_usage]
        if ledger.exclusions or not (ledger.changed_requests or moved or now_seen != self._seen):
            return None
        for slot in moved:
            del ledger.changed_usage[slot]
        self._seen = now_seen
        asked = dict.fromkeys(ledger.changed_requests)
        ledger.changed_requests.clear()
        return asked

    def tree_changed(self) -> bool:
        """Have quotas changed since the last call?"""
        before, self._tree = self._tree, self._state.tree.version
        return before != self._tree


class Unsatisfiable:
    """The requests of claims that can never start, by slot and row: they do not count as demand."""

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
