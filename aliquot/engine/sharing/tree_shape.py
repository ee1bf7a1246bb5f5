"""The shape of trees of slots: parents and children, in dicts for one path and arrays for all.

Children are in order of name, by which ties between them are broken. The arrays hold generation
after generation with siblings side by side, and are built anew when they are read after the shape
has changed.
"""

from bisect import insort
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from aliquot.errors import TreeError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """All slots, generation by generation from the roots, siblings side by side."""

    generations: list[Ints]
    parents: list[Ints]
    """The slots of each generation that have children, as indices into it."""
    order: Ints
    """All slots but the roots; `first[slot]` and `count[slot]` say where its children are."""
    first: Ints
    count: Ints

    def children(self, parents: Ints) -> tuple[Ints, Ints]:
        """How many children each of these parents has, and the children, parent by parent."""
        counts = self.count.take(parents)
        ends = counts.cumsum()
        shift = (self.first.take(parents) - ends + counts).repeat(counts)
        return counts, self.order.take(np.arange(shift.size) + shift)


class TreeShape:
    """Parents, children in order of name, and depths below the root of each tree."""

    def __init__(self, root: int) -> None:
        self.parents: dict[int, int] = {}
        self.children: dict[int, list[int]] = {}
        """Only of slots that have children."""
        self.depths = {root: 0}
        self._roots = [root]
        self._names = {root: ""}
        self._layout: Layout | None = None

    def add_root(self, slot: int) -> None:
        """Begin another tree, unless it has begun."""
        if slot not in self.depths:
            self.depths[slot], self._names[slot] = 0, ""
            self._roots.append(slot)
            self._layout = None

    def __len__(self) -> int:
        return len(self.parents)

    def place(self, slot: int, parent: int, name: str) -> bool:
        """Put a slot, with all below it, under a parent; False if it is there already."""
        if self.parents.get(slot) == parent and self._names[slot] == name:
            return False
        self._check(slot, parent, name)
        self._detach(slot)
        self._names[slot] = name
        self.parents[slot] = parent
        insort(self.children.setdefault(parent, []), slot, key=self._names.__getitem__)
        self._update_depths(slot)
        self._layout = None
        return True

    def drop(self, slot: int) -> int:
        """Take a slot without children out of the tree; returns its parent."""
        if slot in self.children:
            raise TreeError(f"quota {self._names[slot]}: it still has children")
        parent = self.parents[slot]
        self._detach(slot)
        del self.parents[slot], self.depths[slot], self._names[slot]
        self._layout = None
        return parent

    def layout(self) -> Layout:
        """The arrays, as the shape is now."""
        if self._layout is None:
            self._layout = self._lay_out()
        return self._layout

    def _check(self, slot: int, parent: int, name: str) -> None:
        if parent not in self.depths:
            raise TreeError(f"quota {name}: there is no parent in slot {parent}")
        ancestor: int | None = parent
        while ancestor is not None:
            if ancestor == slot:
                raise TreeError(f"quota {name}: its parent {self._names[parent]} is its own child")
            ancestor = self.parents.get(ancestor)

    def _detach(self, slot: int) -> None:
        parent = self.parents.get(slot)
        if parent is not None:
            siblings = self.children[parent]
            siblings.remove(slot)
            if not siblings:
                del self.children[parent]

    def _update_depths(self, slot: int) -> None:
        below = [slot]
        while below:
            each = below.pop()
            self.depths[each] = self.depths[self.parents[each]] + 1
            below += self.children.get(each, ())

    def _lay_out(self) -> Layout:
        first = np.zeros(max(self.depths) + 1, dtype=np.int64)
        count = np.zeros_like(first)
        slots, generations, parents, placed = self._roots, [], [], 0
        while slots:
            generations.append(np.array(slots, dtype=np.int64))
            families = [self.children.get(slot, ()) for slot in slots]
            counts = np.fromiter(map(len, families), np.int64, len(families))
            first[generations[-1]] = placed + counts.cumsum() - counts
            count[generations[-1]] = counts
            parents.append(counts.nonzero()[0])
            slots = list(chain.from_iterable(families))
            placed += len(slots)
        order = np.concatenate([np.zeros(0, dtype=np.int64), *generations[1:]])
        return Layout(generations, parents, order, first, count)
