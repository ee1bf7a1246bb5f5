"""What waiting pods ask for that could not start, even if they had a share.

They ask in vain, so nobody's share is kept for them.
"""

from collections.abc import Callable

from aliquot.engine.claim import Claim
from aliquot.engine.state import State


class Hopeless:
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
