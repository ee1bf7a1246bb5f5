"""The runtime of every quota in a tree: its share, now, of its parent's runtime.

Requests are added up from the leaves: a quota requests what its own pods and its children request,
the latter at most their max. Runtimes are shared out from the root: children share their parent's
runtime, first their mins, then the rest by weight. Resources are independent of each other. The
result depends on the figures alone, never on the order of events.

The usual change is one quota's request, which concerns its path and the siblings along it, a few
dozen numbers. So a change is followed cell by cell: upwards until a limited request is unchanged,
downwards until a runtime is. When much has changed, whole generations are computed in arrays, for
all resources together.
"""

from collections.abc import Iterable

import numpy as np

from aliquot.engine.columns import Resources, Slots, Vector
from aliquot.engine.model.quantity import LIMIT, per_one
from aliquot.engine.sharing.figures import ShareFigures, put
from aliquot.engine.sharing.tree_shape import TreeShape

SlotSet = set[int]

_FEW = 64
"""How many siblings, or changed quotas, are computed cell by cell; beyond, arrays are faster."""


class RuntimeTree:
    """Requests in, runtimes out. Slots and rows are the caller's; the root has the total.

    There may be further roots, each with a total and a tree of its own.
    """

    def __init__(self, resources: Resources, slots: Slots, root: int) -> None:
        self._resources = resources
        self._root = root
        self._shape = TreeShape(root)
        self._figures = ShareFigures(resources, slots, self._shape)
        self._rows = 0
        self._to_add_up: dict[int, SlotSet] = {}
        self._to_share: dict[int, SlotSet] = {}
        self.request = self._figures.request
        """What its pods request, and its children up to max; at least min if it does not lend."""
        self.limited = self._figures.limited
        """The request, at most max: what counts in the parent's request."""
        self.scaled_min = self._figures.scaled_min
        """The min in force: scaled down where the mins of siblings exceed the parent's runtime."""
        self.runtime = self._figures.runtime

    def set(
        self,
        slot: int,
        parent: int,
        name: str,
        low: Vector = (),
        high: Vector = (),
        weight: Vector = (),
        lend: bool = True,
        scale: bool = True,
    ) -> None:
        """Add a quota, or change one: its parent, its name, its min (`low`) and max (`high`).

        `weight`: where it is not given, or if it is zero everywhere, it is max, else min, else one
        of the resource; zero in one resource among others means no share beyond min in that one.
        `lend`: may others use its idle min? `scale`: is its min scaled down with those of its
        siblings when they exceed the parent's runtime? Otherwise it is kept in full.
        """
        figures = self._figures
        before = self._shape.parents.get(slot, parent)
        changed = self._shape.place(slot, parent, name)
        changed |= put(figures.flags, figures.lend, slot, lend)
        changed |= put(figures.flags, figures.scale, slot, scale)
        self._widen()
        lows, highs = dict(low), dict(high)
        weights = dict(weight) if any(amount for _, amount in weight) else {}
        for row, resource in enumerate(self._resources.names):
            default = highs.get(row, lows.get(row) or per_one(resource))
            differs = put(figures.min, row, slot, lows.get(row, 0))
            differs |= put(figures.max, row, slot, highs.get(row, LIMIT))
            differs |= put(figures.weight, row, slot, weights.get(row, default))
            if changed or differs:
                self._touch(row, (slot, parent, before), (parent, before))

    def remove(self, slot: int) -> None:
        """Remove a quota without children, and its request."""
        parent = self._shape.drop(slot)
        for row in range(len(self._resources)):
            for columns in (self._figures.own, self.request, self.limited, self.scaled_min):
                put(columns, row, slot, 0)
            put(self.runtime, row, slot, 0)
            self._touch(row, (parent,), (parent,))

    def ask(self, slot: int, row: int, amount: int) -> None:
        """Set what the quota's own pods request together."""
        if put(self._figures.own, row, slot, amount):
            self._touch(row, (slot,), ())

    def add_root(self, slot: int) -> None:
        """Begin another tree, unless it has begun."""
        self._shape.add_root(slot)

    def total(self, row: int, amount: int, guaranteed: int = 0, root: int | None = None) -> None:
        """Set what the quotas below a root share; their mins are scaled down to `guaranteed`.

        If that is less than the total, the mins are scaled down to the total.
        """
        slot = self._root if root is None else root
        differs = put(self.runtime, row, slot, max(amount, 0))
        differs |= put(self._figures.guaranteed, row, slot, max(guaranteed, 0))
        if differs:
            self._touch(row, (), (slot,))

    def depth(self, slot: int) -> int:
        """How far a quota is below the root."""
        return self._shape.depths[slot]

    def children(self, slot: int) -> Iterable[int]:
        """The quotas right below one."""
        return self._shape.children.get(slot, ())

    def refresh(self) -> list[int]:
        """Bring all figures up to date; returns the slots of quotas whose runtime has changed."""
        self._widen()
        many = _FEW + len(self._shape) // 32
        whole = sorted(row for row, slots in self._to_add_up.items() if len(slots) > many)
        changed = self._compute(whole) if whole else SlotSet()
        for row in sorted({*self._to_add_up, *self._to_share}.difference(whole)):
            to_share = self._add_up(row, self._to_add_up.get(row, SlotSet()))
            changed |= self._share_down(row, to_share | self._to_share.get(row, SlotSet()))
        self._to_add_up.clear()
        self._to_share.clear()
        return sorted(changed)

    def _touch(self, row: int, to_add_up: Iterable[int], to_share: Iterable[int]) -> None:
        """Remember the quotas to add up again, and the parents to share out again."""
        self._to_add_up.setdefault(row, SlotSet()).update(to_add_up)
        self._to_share.setdefault(row, SlotSet()).update(to_share)

    def _widen(self) -> None:
        """Give every quota the default weight, one of the resource, in resources that are new."""
        for row in range(self._rows, len(self._resources)):
            self._figures.weight.data[row] = per_one(self._resources.names[row])
        self._rows = len(self._resources)

    def _add_up(self, row: int, to_add_up: SlotSet) -> SlotSet:
        """Add up requests upwards as far as they change; returns the parents of those that did."""
        parents, to_share = self._shape.parents, SlotSet()
        pending = self._by_depth(to_add_up)
        while pending:
            depth = max(pending)
            for slot in pending.pop(depth):
                if self._figures.limit(row, slot) and slot in parents:
                    to_share.add(parents[slot])
                    pending.setdefault(depth - 1, SlotSet()).add(parents[slot])
        return to_share

    def _share_down(self, row: int, to_share: SlotSet) -> SlotSet:
        """Share out below these parents, and below every quota whose runtime changes by that."""
        children, changed = self._shape.children, SlotSet()
        pending = self._by_depth(to_share)
        while pending:
            depth = min(pending)
            fresh = self._share_out(row, [slot for slot in pending.pop(depth) if slot in children])
            changed |= fresh
            if below := [slot for slot in fresh if slot in children]:
                pending.setdefault(depth + 1, SlotSet()).update(below)
        return changed

    def _by_depth(self, slots: SlotSet) -> dict[int, SlotSet]:
        """The slots that are in the tree, by generation."""
        depths = self._shape.depths
        found: dict[int, SlotSet] = {}
        for slot in slots:
            if slot in depths:
                found.setdefault(depths[slot], SlotSet()).add(slot)
        return found

    def _share_out(self, row: int, parents: list[int]) -> SlotSet:
        children, changed = self._shape.children, SlotSet()
        if sum(len(children[parent]) for parent in parents) > _FEW:
            several = np.array(parents, dtype=np.int64)
            return self._figures.share_out_all(np.array([row]), several)
        for parent in parents:
            changed.update(self._figures.share_out(row, parent))
        return changed

    def _compute(self, rows: list[int]) -> SlotSet:
        """Compute all figures in these resources."""
        layout, changed = self._shape.layout(), SlotSet()
        every = np.array(rows, dtype=np.int64)
        limited = None
        for slots, parents in zip(layout.generations[::-1], layout.parents[::-1], strict=True):
            limited = self._figures.limit_all(every, slots, parents, limited)
        for slots, parents in zip(layout.generations[:-1], layout.parents, strict=False):
            changed |= self._figures.share_out_all(every, slots.take(parents))
        return changed
