"""What each node has free, in columns: as an amount, and as a fraction of what it has.

Computed again only for the nodes in the change log, once for all shapes that read them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources

WHOLE = 2**18
"""Fractions of a node are integers out of this, so that sums do not depend on order; 18 bits tell
one GiB of 256 TiB apart, and 31 of them fit the score (see `best_node`)."""

FEW_ROWS = 32
"""Up to so many resources, all of them are looked at, in the fewest numpy calls; a cluster has some
ten. Beyond, only those that a node has or a pod asks for: tenants can name as many as they like."""
_MOST_RECOMPUTED = 1 << 16
"""How long the list of recomputed nodes may get before it is emptied, which makes every shape
compute all its scores once: spread over 65,536 changes, that costs little for each."""

_SHORT = 256
"""A list of recomputed nodes that is worth a look for how many they are."""
_FEW_NODES = 16
"""So many nodes are scored one by one in the time that one pass in arrays takes, however few."""


class FreeCapacity:
    """Free amounts and free fractions over the nodes."""

    def __init__(
        self, resources: Resources, nodes: Nodes, ledger: Ledger, changes: Changes
    ) -> None:
        self._resources = resources
        self._has = nodes.allocatable
        self._taken = ledger.taken
        self._changed = changes.nodes.cursor()
        self.free = Columns(resources, nodes.slots)
        self.part = Columns(resources, nodes.slots)
        self._recomputed = np.zeros(_MOST_RECOMPUTED, dtype=np.int64)
        self._log: memoryview[int] = self._recomputed.data
        """The same, to write and read single places."""
        self._places = np.arange(_MOST_RECOMPUTED)
        self._last = np.zeros(0, dtype=np.int64)
        """The last place of each node in the list of recomputed ones; below zero if it has none."""
        self.recomputed = 0
        """How many nodes were computed anew, for the shapes that score them: each remembers how
        far it has read (`recomputed_since`)."""
        self.epoch = 0
        """How often this began anew; its readers then start from all nodes."""

    @property
    def moment(self) -> tuple[int, int]:
        """Equal as long as no node was computed anew."""
        return self.epoch, self.recomputed

    def refresh(self) -> None:
        """Bring the nodes up to date that have changed since the last call."""
        changed = set(self._changed.read())
        if not changed:
            return
        width, rows = self.free.width, len(self._resources.names)
        for slot in changed:
            every = rows <= FEW_ROWS
            self._compute(range(slot, rows * width, width) if every else self._cells(slot, width))
        end = self.recomputed + len(changed)
        if end > _MOST_RECOMPUTED:
            self.recomputed = 0
            self._last[:] = -1
            self.epoch += 1
            return
        if len(self._last) < self.free.width:
            more = np.full(self.free.width - len(self._last), -1, dtype=np.int64)
            self._last = np.append(self._last, more)
        recomputed, last = self._log, self._last.data
        for at, slot in enumerate(changed, start=self.recomputed):
            recomputed[at] = slot
            last[slot] = at
        self.recomputed = end

    def few_recomputed_since(self, read: int) -> set[int] | None:
        """The nodes computed anew after the first `read`; None if they are more than a few."""
        if self.recomputed - read > _SHORT:
            return None
        found = set(self._log[read : self.recomputed].tolist())
        return found if len(found) <= _FEW_NODES else None

    def recomputed_since(self, read: int) -> NDArray[np.int64]:
        """The nodes computed anew after the first `read`, each once."""
        if self.recomputed - read > len(self._last):  # a pass over all nodes is shorter
            return np.flatnonzero(self._last >= read)
        unread = self._recomputed[read : self.recomputed]
        is_last = self._last.take(unread) == self._places[read : self.recomputed]
        found: NDArray[np.int64] = unread[is_last]
        return found

    def _compute(self, cells: Iterable[int]) -> None:
        """Compute the cells of a node."""
        all_has, all_taken = self._has.cells, self._taken.cells
        all_free, all_parts = self.free.cells, self.part.cells
        for cell in cells:
            has = all_has[cell]
            free = has - all_taken[cell]
            all_free[cell] = free
            all_parts[cell] = free * WHOLE // has if free > 0 else 0

    def _cells(self, slot: int, width: int) -> Iterable[int]:
        """The cells of a node where resources are many: only of those that it has, or had."""
        counts = (self._has.data[:, slot] != 0) | (self._taken.data[:, slot] != 0)
        counts |= (self.free.data[:, slot] != 0) | (self.part.data[:, slot] != 0)
        found: list[int] = (np.flatnonzero(counts) * width + slot).tolist()
        return found
