"""Changes of demand: must the shares of the quotas be worked out anew?

For the policies that share by request (`hierarchy`, `queues`). They check before every decision,
and mostly nothing has changed, so the check must be cheap.
"""

from collections.abc import Callable, Set

from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Demand:
    """The versions of the books that the shares were last worked out for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._requests = state.changes.requests.cursor()
        self._usage = state.changes.usage.cursor()
        self._nodes = state.changes.nodes.cursor()
        self._versions: tuple[int, ...] = ()
        self._tree = -1

    def changed_quotas(self, unshared: Set[int]) -> dict[int, None] | None:
        """The quotas (by slot) whose request has changed; None if nothing has changed at all.

        A change of use in the `unshared` slots counts as well, and on nodes that take no new pods:
        these add to the total what runs on them. While bookings are tried, nothing counts as
        changed: what is set aside or tried will be put back.
        """
        state = self._state
        if state.ledger.speculative:
            return None
        versions = (state.tree.version, state.placement.version(), state.waiting.changes)
        moved = bool(self._usage) and not unshared.isdisjoint(self._usage.read())
        if not (self._requests or moved or self._total_moved() or versions != self._versions):
            return None
        self._versions = versions
        return dict.fromkeys(self._requests.read())

    def _total_moved(self) -> bool:
        """Has the use of a node changed that takes no new pods, or is lost?"""
        nodes = self._state.nodes
        touched = self._nodes.read() if self._nodes else ()
        return any(slot in nodes.closed or slot in nodes.lost for slot in touched)

    def tree_changed(self) -> bool:
        """Have quotas changed since the last call?"""
        before, self._tree = self._tree, self._state.tree.version
        return before != self._tree


class Unsatisfiable:
    """The requests of claims that can never start, by slot and row: they do not count as demand."""

    def __init__(self, state: State, is_unsatisfiable: Callable[[State, Claim], bool]) -> None:
        self._state = state
        self._is_unsatisfiable = is_unsatisfiable
        self._versions = (-1, -1, -1)
        self.amounts: dict[int, dict[int, int]] = {}

    def refresh(self) -> bool:
        """Bring the sums up to date; True if they have changed."""
        state = self._state
        versions = (state.placement.version(), state.waiting.changes, state.tree.version)
        if versions == self._versions:
            return False
        self._versions = versions
        before, self.amounts = self.amounts, {}
        for claim, number in state.waiting.kinds():
            if claim.quota not in state.tree.quotas or not self._is_unsatisfiable(state, claim):
                continue
            sums = self.amounts.setdefault(state.tree.slots[str(claim.quota)], {})
            for row, amount in claim.charge(None):
                sums[row] = sums.get(row, 0) + amount * number
        return before != self.amounts
