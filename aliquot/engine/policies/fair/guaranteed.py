"""Guaranteed shares: what part of the idle min each quota may take by preemption."""

import numpy as np

from aliquot.engine.books.quota_tree import NO_GROUP
from aliquot.engine.columns import exact_sum
from aliquot.engine.state import State


class GuaranteedShares:
    """The idle min of one resource, and the share of it that each quota is guaranteed.

    Shares are in proportion to min, among the quotas that may borrow it: the idle min of a lending
    group is shared inside the group. With `count_waiting`, min that waiting pods request is not
    idle.
    """

    def __init__(self, state: State, row: int, count_waiting: bool = False) -> None:
        self._tree = state.tree
        self._row = row
        leaves, self._groups = state.tree.leaf_slots, state.tree.leaf_groups
        self._mins = state.tree.min.data[row][leaves]
        used = state.ledger.used.data[row][leaves] - state.leaving.charge.data[row][leaves]
        idle = np.maximum(self._mins - used, 0)
        for more in (state.ledger.held, *([state.ledger.wanted] if count_waiting else [])):
            idle -= np.minimum(more.data[row][leaves], idle)
        self._idle = idle
        self._pools: dict[int, tuple[int, int]] = {}

    def guaranteed(self, quota: str) -> int:
        """The quota's share of the idle min, in whole units: floor(pool x min / sum of min)."""
        low = self._tree.min.get(self._row, self._tree.slots[quota])
        group = self._tree.groups.get(self._tree.quotas[quota].group)
        pools = [self._pool(NO_GROUP), *([] if group is None else [self._pool(group)])]
        return sum(idle * low // whole for idle, whole in pools if whole)

    def entitlement(self, quota: str) -> int:
        """What a quota can reach by preemption: its min plus its guaranteed share."""
        return self._tree.min.get(self._row, self._tree.slots[quota]) + self.guaranteed(quota)

    def _pool(self, group: int) -> tuple[int, int]:
        """The idle min of a lending group (or of no group), and the sum of min it is shared by."""
        if group not in self._pools:
            inside = self._groups == group
            whole = self._mins if group == NO_GROUP else self._mins[inside]
            self._pools[group] = exact_sum(self._idle[inside]), exact_sum(whole)
        return self._pools[group]
