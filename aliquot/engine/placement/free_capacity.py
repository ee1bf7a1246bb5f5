"""What each node has free, in columns: as an amount, and as a part of what the node has.

Kept in step with the ledger and the nodes slot by slot: only nodes that were touched are worked out
again, once for everybody who looks at them.
"""

from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources

WHOLE = 2**18
"""A part of WHOLE is a whole node: parts are integers, so that sums do not depend on order."""

_LONGEST_LOG = 1 << 16


class FreeCapacity:
    """Free amounts and free parts over the nodes."""

    def __init__(self, resources: Resources, nodes: Nodes, ledger: Ledger) -> None:
        self._resources = resources
        self._has = nodes.allocatable
        self._taken = ledger.taken
        self.free = Columns(resources, nodes.slots)
        self.part = Columns(resources, nodes.slots)
        self.changed_nodes = ledger.changed_nodes
        """The nodes whose room has changed, in order; readers remember how far they have read."""
        self.epoch = 0
        """Grows when the log starts anew."""
        self._read = 0

    def catch_up(self) -> None:
        """Work out the nodes that were touched since."""
        log = self.changed_nodes
        if self._read == len(log):
            return
        for slot in set(log[self._read :]):
            self._work_out(slot)
        if len(log) > _LONGEST_LOG:
            log.clear()
            self.epoch += 1
        self._read = len(log)

    def _work_out(self, slot: int) -> None:
        width = self.free.width
        all_has, all_taken = self._has.cells, self._taken.cells
        all_free, all_parts = self.free.cells, self.part.cells
        for cell in range(slot, slot + len(self._resources) * width, width):
            has = all_has[cell]
            free = has - all_taken[cell]
            all_free[cell] = free
            all_parts[cell] = free * WHOLE // has if free > 0 else 0
