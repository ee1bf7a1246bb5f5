"""What each node has free, in columns: as an amount, and as a fraction of what it has.

Computed again only for the nodes that the ledger reports as changed, once for all shapes that read
them.
"""

from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources

WHOLE = 2**18
"""Fractions of a node are integers out of this, so that sums do not depend on order; 18 bits tell
one GiB of 256 TiB apart, and 31 of them fit the score (see `best_node`)."""

_LONGEST_LOG = 1 << 16
"""How long the log of changed nodes may get before it starts anew, which makes every shape compute
all its scores once: spread over 65,536 changes, that costs little for each."""


class FreeCapacity:
    """Free amounts and free fractions over the nodes."""

    def __init__(self, resources: Resources, nodes: Nodes, ledger: Ledger) -> None:
        self._resources = resources
        self._has = nodes.allocatable
        self._taken = ledger.taken
        self.free = Columns(resources, nodes.slots)
        self.part = Columns(resources, nodes.slots)
        self.changed_nodes = ledger.changed_nodes
        """The log of nodes whose free capacity has changed; readers remember their place in it."""
        self.epoch = 0
        """How often the log has started anew."""
        self._read = 0

    def refresh(self) -> None:
        """Bring the nodes up to date that have changed since the last call."""
        log = self.changed_nodes
        if self._read == len(log):
            return
        for slot in set(log[self._read :]):
            self._compute(slot)
        if len(log) > _LONGEST_LOG:
            log.clear()
            self.epoch += 1
        self._read = len(log)

    def _compute(self, slot: int) -> None:
        width = self.free.width
        all_has, all_taken = self._has.cells, self._taken.cells
        all_free, all_parts = self.free.cells, self.part.cells
        for cell in range(slot, slot + len(self._resources) * width, width):
            has = all_has[cell]
            free = has - all_taken[cell]
            all_free[cell] = free
            all_parts[cell] = free * WHOLE // has if free > 0 else 0
