"""What every node has left of its cards, and of the cpu and memory that they need.

Followed through the log of recomputed nodes. Nodes of which the same is left are told as such, so
that what follows from a rest is worked out once for all of them: of a cluster that fills up, most
nodes are empty, or full, in the same way.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.gpu import CARD_RESOURCES
from aliquot.engine.placement.fragmentation.usable import Column, Rest, UsableCards
from aliquot.engine.placement.node_books import NodeBooks

MOST_CARDS = 2**10
"""More than a node has: products stay in int64."""
_SUPPLY = ("cpu", "memory")
MEMORY_SHIFT = 20
"""Memory counts in MiB, rounded down where it is free, up where it is asked for."""
_FEW = 32
"""So few nodes are not looked through for equal ones: numpy takes as long for all of them."""
_MOST_STATES = 2**16
"""How many rests are told apart before all begin anew: more than changes between two rounds."""

Version = tuple[int, ...]


class NodeRests:
    """The rests of all nodes, and which are equal."""

    def __init__(self, books: NodeBooks) -> None:
        self._resources, self._nodes, self._devices, self._capacity, _ = books
        self._here: Version = ()
        self._read = -1, 0
        """How far the list of nodes with another free capacity was read."""
        self._known: dict[bytes, int] = {}
        """A number for each rest."""
        self._state = np.zeros(0, dtype=np.int64)
        """The number of each node's rest."""
        self.bare = np.zeros(0, dtype=bool)
        """The nodes whose cards are no devices: the engine knows how many they have, no more."""
        self.all: Rest
        """By slot; the levels are those of the tables that `fragmentation` looks up."""

    @property
    def version(self) -> Version:
        """Another one whenever nodes or devices are others."""
        return self._nodes.version, self._devices.version, len(self._nodes.slots)

    def follow(self) -> Column:
        """Bring the rests up to date; the nodes of which another is left."""
        self._capacity.refresh()
        here, now = self.version, (self._capacity.epoch, self._capacity.recomputed)
        is_begun = here == self._here and now[0] == self._read[0]
        if is_begun and now == self._read:
            return np.zeros(0, dtype=np.int64)
        changed = self._capacity.recomputed_since(self._read[1]) if is_begun else None
        self._read, self._here = now, here
        if changed is None or len(self._known) > _MOST_STATES:
            return self._begin()
        for column, new in zip(self.all.columns, self._rest(changed).columns, strict=True):
            column[..., changed] = new
        return changed

    def _begin(self) -> Column:
        """Work out the rests of all nodes."""
        every = np.arange(len(self._nodes.slots))
        cards = np.zeros(len(every), dtype=bool)
        for row in self.card_rows():
            cards |= self._nodes.allocatable.data[row, : len(every)] > 0
        self.bare = cards & ~self._devices.cards.largest().any(axis=0)
        self._known.clear()
        self._state = np.zeros(len(every), dtype=np.int64)
        self.all = self._rest(every)
        return every

    def _rest(self, slots: Column) -> Rest:
        """What these nodes have left; notes which rests are equal."""
        supply = np.zeros((2, len(slots)), dtype=np.int64)
        for i, name in enumerate(_SUPPLY):
            if name in self._resources:
                supply[i] = self._capacity.free.data[self._resources.row(name)].take(slots)
        supply[1] >>= MEMORY_SHIFT
        broken = self._devices.cards.broken(slots)
        idle = self._devices.cards.idle(slots).sum(axis=0)
        bare = self.bare.take(slots)
        if bare.any():
            idle = np.where(bare, self._free_cards(slots), idle)
        facts = np.vstack((supply, broken, idle)).T
        for slot, row in zip(slots.tolist(), facts, strict=True):
            self._state[slot] = self._known.setdefault(row.tobytes(), len(self._known))
        return Rest(supply, broken, np.zeros_like(broken), idle)

    def _free_cards(self, slots: Column) -> Column:
        """How many whole cards these nodes have free, as their resources say."""
        number = np.zeros(len(slots), dtype=np.int64)
        for row in self.card_rows():
            number += self._capacity.free.data[row].take(slots)
        return np.minimum(np.maximum(number, 0), MOST_CARDS)

    def card_rows(self) -> list[int]:
        """The rows of resources that are cards."""
        return [self._resources.row(name) for name in CARD_RESOURCES if name in self._resources]

    def find_levels(self, slots: Column, kind: UsableCards) -> None:
        """Look up the levels of what these nodes, of a kind, have left of cards."""
        self.all.levels[:, slots] = self.once(
            slots, lambda some: kind.levels(self.all.broken.take(some, -1))
        )

    def once(
        self, slots: Column, judge: Callable[[Column], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """What a judge says of these nodes, which is the same for equal rests."""
        if len(slots) <= _FEW:
            return judge(slots)
        states, every = self._state.take(slots), np.arange(len(slots))
        one = np.empty(len(self._known), dtype=np.int64)
        one[states] = every
        like = one.take(states)
        chosen = np.flatnonzero(like == every)
        place = np.empty_like(every)
        place[chosen] = np.arange(len(chosen))
        said: NDArray[np.int64] = judge(slots.take(chosen)).take(place.take(like), -1)
        return said
