"""What each node has free, in columns: as an amount, and as a fraction of what it has.

Computed again only for the nodes in the change log, once for all shapes that read them.
"""

from collections.abc import Iterable

import numpy as np

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
        self.recomputed: list[int] = []
        """The nodes computed anew, in order, for the shapes that score them: each remembers how
        far it has read."""
        self.epoch = 0
        """How often `recomputed` was emptied; its readers then start from all nodes."""

    def refresh(self) -> None:
        """Bring the nodes up to date that have changed since the last call."""
        if not self._changed:
            return
        changed = set(self._changed.read())
        for slot in changed:
            self._compute(slot)
        self.recomputed.extend(changed)
        if len(self.recomputed) > _MOST_RECOMPUTED:
            self.recomputed.clear()
            self.epoch += 1

    def _compute(self, slot: int) -> None:
        width = self.free.width
        all_has, all_taken = self._has.cells, self._taken.cells
        all_free, all_parts = self.free.cells, self.part.cells
        for cell in self._cells(slot, width):
            has = all_has[cell]
            free = has - all_taken[cell]
            all_free[cell] = free
            all_parts[cell] = free * WHOLE // has if free > 0 else 0

    def _cells(self, slot: int, width: int) -> Iterable[int]:
        """The cells of a node: of many resources, only of those that it has, or had."""
        rows = len(self._resources)
        if rows <= FEW_ROWS:
            return range(slot, slot + rows * width, width)
        counts = (self._has.data[:, slot] != 0) | (self._taken.data[:, slot] != 0)
        counts |= (self.free.data[:, slot] != 0) | (self.part.data[:, slot] != 0)
        found: list[int] = (np.flatnonzero(counts) * width + slot).tolist()
        return found
