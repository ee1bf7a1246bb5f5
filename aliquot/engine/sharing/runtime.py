"""The runtime of every quota in a tree: its share, now, of what its parent has.

Requests go up: a quota asks for what its pods ask and its children are allowed to ask, at most its
max. Runtimes come down: a parent's runtime is what its children share, first their mins, then the
rest by weight. Each resource is a world of its own, and each level is computed as a whole, so that
the order of events leaves no trace.

What decided the layout: the usual change is one quota's request, which concerns its path and the
siblings along it, a few dozen numbers. So a change is followed cell by cell, upwards until a
limited request stays as it was, downwards until a runtime does. When much has changed, whole
levels are computed in one go, in all resources together.
"""

from collections.abc import Iterable

import numpy as np

from aliquot.engine.columns import Resources, Slots, Vector
from aliquot.engine.model.quantity import LIMIT, per_one
from aliquot.engine.sharing.figures import ShareFigures, put
from aliquot.engine.sharing.tree_shape import TreeShape

SlotSet = set[int]

_FEW = 64
"""How many siblings are shared out cell by cell; beyond that, arrays are faster."""


class RuntimeTree:
    """Requests in, runtimes out. Slots and rows are the caller's; the root has the total."""

    def __init__(self, resources: Resources, slots: Slots, root: int) -> None:
        self._resources = resources
        self._root = root
        self._shape = TreeShape(root)
        self._figures = ShareFigures(resources, slots, self._shape)
        self._rows = 0
        self._asked: dict[int, SlotSet] = {}
        self._uneven: dict[int, SlotSet] = {}
        self.request = self._figures.request
        """What each asks for: its pods, its children's limited requests; min if it never lends."""
        self.limited = self._figures.limited
        """The request, up to max: all that its parent sees of it."""
        self.scaled_min = self._figures.scaled_min
        """The min in force: less than the quota's own where the siblings' mins do not all fit."""
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
        of the resource; zero in one resource among others means no say in that one.
        `lend`: may others use what it leaves of its min? `scale`: does its min shrink with those of
        its siblings when they exceed what there is? Otherwise it is promised whatever happens.
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
        """Forget a quota without children, and what its pods ask for."""
        parent = self._shape.drop(slot)
        for row in range(len(self._resources)):
            for columns in (self._figures.own, self.request, self.limited, self.scaled_min):
                put(columns, row, slot, 0)
            put(self.runtime, row, slot, 0)
            self._touch(row, (parent,), (parent,))

    def ask(self, slot: int, row: int, amount: int) -> None:
        """What the quota's own pods ask for, all together."""
        if put(self._figures.own, row, slot, amount):
            self._touch(row, (slot,), ())

    def total(self, row: int, amount: int) -> None:
        """What there is to share among the quotas below the root."""
        if put(self.runtime, row, self._root, max(amount, 0)):
            self._touch(row, (), (self._root,))

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
        whole = sorted(row for row, slots in self._asked.items() if len(slots) > many)
        changed = self._compute(whole) if whole else SlotSet()
        for row in sorted({*self._asked, *self._uneven}.difference(whole)):
            uneven = self._rise(row, self._asked.get(row, SlotSet()))
            changed |= self._sink(row, uneven | self._uneven.get(row, SlotSet()))
        self._asked.clear()
        self._uneven.clear()
        return sorted(changed)

    def _touch(self, row: int, asked: Iterable[int], uneven: Iterable[int]) -> None:
        """Remember whose request, and whose children's shares, may be different now."""
        self._asked.setdefault(row, SlotSet()).update(asked)
        self._uneven.setdefault(row, SlotSet()).update(uneven)

    def _widen(self) -> None:
        """In a resource met for the first time, every quota has the weight of one of it."""
        for row in range(self._rows, len(self._resources)):
            self._figures.weight.data[row] = per_one(self._resources.names[row])
        self._rows = len(self._resources)

    def _rise(self, row: int, asked: SlotSet) -> SlotSet:
        """Carry requests upwards as far as they change; returns the parents of those that did."""
        parents, uneven = self._shape.parents, SlotSet()
        pending = self._by_depth(asked)
        while pending:
            depth = max(pending)
            for slot in pending.pop(depth):
                if self._figures.limit(row, slot) and slot in parents:
                    uneven.add(parents[slot])
                    pending.setdefault(depth - 1, SlotSet()).add(parents[slot])
        return uneven

    def _sink(self, row: int, uneven: SlotSet) -> SlotSet:
        """Share out again below these parents, and below whoever has a new runtime by that."""
        children, changed = self._shape.children, SlotSet()
        pending = self._by_depth(uneven)
        while pending:
            depth = min(pending)
            news = self._share_out(row, [slot for slot in pending.pop(depth) if slot in children])
            changed |= news
            if below := [slot for slot in news if slot in children]:
                pending.setdefault(depth + 1, SlotSet()).update(below)
        return changed

    def _by_depth(self, slots: SlotSet) -> dict[int, SlotSet]:
        """Slots that are in the tree, by generation."""
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
        """Compute everything in these resources."""
        layout, changed = self._shape.layout(), SlotSet()
        every = np.array(rows, dtype=np.int64)
        limited = None
        for slots, parents in zip(layout.generations[::-1], layout.parents[::-1], strict=True):
            limited = self._figures.limit_all(every, slots, parents, limited)
        for slots, parents in zip(layout.generations[:-1], layout.parents, strict=False):
            changed |= self._figures.share_out_all(every, slots.take(parents))
        return changed
