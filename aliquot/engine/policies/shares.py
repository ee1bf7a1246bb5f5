"""The runtime shares of a cluster's quotas, kept in step with its state.

Connects the maths of `runtime` with the tree and the ledger: which quotas share, in which
resources, what their pods ask for, and what there is to share. The quota of the system stands
outside: what it uses is not there for the others.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.config import HierarchyKnobs
from aliquot.engine.objects import Quota
from aliquot.engine.runtime import RuntimeTree
from aliquot.engine.state import State
from aliquot.engine.tree import OUTSIDE, ROOT

Masks = NDArray[np.bool_]


class Shares:
    """Runtime of every quota; `refresh` before reading."""

    def __init__(self, state: State, knobs: HierarchyKnobs) -> None:
        self._state = state
        self._knobs = knobs
        tree = state.tree
        self._tree = RuntimeTree(state.resources, tree.slots, tree.slots[ROOT])
        self._moment: tuple[int, ...] = ()
        self._seen = -1
        self._asking: dict[int, None] = {}
        self._outside: list[int] = []
        self._nodes: dict[str, int] = {}
        self._hopeless_at = (-1, -1)
        self._hopeless: dict[int, dict[int, int]] = {}
        self.own: dict[int, int] = {}
        """The slot that stands for a parent's own pods among its children, by its slot."""
        self.runtime = self._tree.runtime
        self.scaled_min = self._tree.scaled_min
        self.request = self._tree.request
        self.counted: dict[int, frozenset[int]] = {}
        """The resources in which a quota is bound, by slot: those it names; if none, all named."""

    def refresh(self) -> list[int]:
        """Bring everything up to date; the slots of quotas whose runtime has changed.

        Not while a hold is left out of account: whose it is asks for as much as before.
        """
        state, ledger = self._state, self._state.ledger
        moment = (state.tree.version, state.placement.version(), state.waiting.changes)
        outside_moved = [slot for slot in self._outside if slot in ledger.moved]
        if ledger.lifting or not (ledger.asked or outside_moved or moment != self._moment):
            return []
        for slot in outside_moved:
            del ledger.moved[slot]
        self._moment = moment
        asked = dict.fromkeys(ledger.asked)
        ledger.asked.clear()
        if self._seen != state.tree.version:
            self._seen = state.tree.version
            self._lay_out()
            asked.update(self._asking)
        if self._find_hopeless():
            asked.update(self._asking)
        standing_in = set(self.own.values())
        for slot in asked:
            if slot in self._asking and slot not in standing_in:
                self._ask(slot)
        self._measure()
        return self._tree.refresh()

    def accounts(self, quota: str) -> tuple[int, ...]:
        """Whose runtime bounds a quota's pods: its own first, then its ancestors'."""
        path = self._state.tree.path(quota)[:-1]
        own = self.own.get(path[0])
        return path if own is None else (own, *path)

    def _lay_out(self) -> None:
        """Make the tree of shares agree with the quotas: parents first, leftovers last."""
        tree, resources = self._state.tree, self._state.resources
        sharing = [quota for quota in tree.quotas.values() if not quota.outside]
        named = {quota.name: _named(quota) for quota in sharing}
        everything = frozenset().union(*named.values())
        self._outside = [tree.slots[q.name] for q in tree.quotas.values() if q.outside]
        self._outside.append(tree.slots[OUTSIDE])
        before, self._asking, self.own, self.counted = self._asking, {}, {}, {}
        sharing.sort(key=lambda quota: len(tree.path(quota.name)))
        for quota in sharing:
            slot, parent = tree.path(quota.name)[:2]
            rows = frozenset(resources.row(each) for each in named[quota.name] or everything)
            self._set(slot, parent, quota, quota.min)
            self.counted[slot] = rows
            self._asking[slot] = None
            if quota.is_parent and self._knobs.parent_pods == "implicitChild":
                own = self.own[slot] = tree.slots.take(f"<own pods of {quota.name}>")
                self._set(own, slot, quota, _left_over(quota, sharing))
                self.counted[own] = rows
                self._asking[own] = None
        gone = [slot for slot in before if slot not in self._asking]
        for slot in sorted(gone, key=self._tree.depth, reverse=True):
            self._tree.remove(slot)

    def _set(self, slot: int, parent: int, quota: Quota, low: tuple[tuple[str, int], ...]) -> None:
        vector, scale = self._state.resources.vector, self._knobs.scale_min
        bounds = (vector(low), vector(quota.max), vector(quota.weight))
        name = self._state.tree.slots.names[slot] or ""
        self._tree.set(slot, parent, name, *bounds, lend=quota.lend, scale=scale)

    def _ask(self, slot: int) -> None:
        """What the quota's own pods ask for, in what it is bound in."""
        ledger, own = self._state.ledger, self.own.get(slot)
        below = self._tree.children(slot)
        hopeless = self._hopeless.get(slot, {})
        for row in self.counted[slot]:
            total = 0
            for column in (ledger.used, ledger.held, ledger.wanted):
                total += column.get(row, slot) - sum(column.get(row, each) for each in below)
            self._tree.ask(slot if own is None else own, row, total - hopeless.get(row, 0))

    def _find_hopeless(self) -> bool:
        """What waiting pods ask for that no node could hold even if it were empty.

        They ask in vain, so nobody's share is kept for them. True if that may have changed.
        """
        state = self._state
        moment = (state.placement.version(), state.waiting.changes)
        if moment == self._hopeless_at:
            return False
        self._hopeless_at = moment
        before, self._hopeless = self._hopeless, {}
        for claim, number in state.waiting.kinds():
            if claim.quota is None or all(state.placement.could_hold(ask) for ask in claim.asks):
                continue
            sums = self._hopeless.setdefault(state.tree.slots[claim.quota], {})
            for row, amount in claim.charge(None):
                sums[row] = sums.get(row, 0) + amount * number
        return before != self._hopeless

    def _measure(self) -> None:
        """What there is to share: what the nodes have, less what is used outside the shares."""
        state = self._state
        for row, name in enumerate(state.resources.names):
            used = sum(state.ledger.used.get(row, slot) for slot in self._outside)
            self._tree.total(row, state.nodes.total.get(name, 0) - used)


def _named(quota: Quota) -> frozenset[str]:
    return frozenset(name for name, _ in (*quota.min, *quota.max))


def _left_over(quota: Quota, quotas: list[Quota]) -> tuple[tuple[str, int], ...]:
    """What a parent is guaranteed beyond what it has promised to its children."""
    promised: dict[str, int] = {}
    for child in quotas:
        if child.parent == quota.name:
            for name, amount in child.min:
                promised[name] = promised.get(name, 0) + amount
    return tuple((name, max(low - promised.get(name, 0), 0)) for name, low in quota.min)
