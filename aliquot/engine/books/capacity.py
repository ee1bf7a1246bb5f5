"""What the cluster has: what is there to lend, and what guarantees are made of.

A node that takes no new pods (cordoned, not ready, about to be removed) adds to what is *lent* only
what runs on it: nothing else of it can be had. What is *guaranteed* does not shrink for that, or a
drain would evict pods within their quota's min; it shrinks for nodes that are lost, that is, not
ready for longer than `eviction.nodeLostAfter`. A node that is gone is not ready since then: in a
rolling upgrade it comes back.
"""

from collections.abc import Iterable

import numpy as np

from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns, Resources


class Capacity:
    """The amounts of all nodes together, by row."""

    def __init__(self, resources: Resources, nodes: Nodes, ledger: Ledger) -> None:
        self._resources = resources
        self._nodes = nodes
        self._ledger = ledger

    def lent(self, row: int, leaving: Columns | None = None) -> int:
        """What all nodes have, of those that take no new pods only what runs there.

        With the room of `leaving` pods, once they are gone.
        """
        return self._total(row) - self.idle_on(row, self._nodes.closed, leaving)

    def guaranteed(self, row: int) -> int:
        """What all nodes have, of lost ones only what runs there; and what is gone for a moment."""
        missing = self._nodes.missing.get(self._resources.names[row], 0)
        return self._total(row) + missing - self.idle_on(row, self._nodes.lost)

    def _total(self, row: int) -> int:
        return self._nodes.total.get(self._resources.names[row], 0)

    def idle_on(self, row: int, nodes: Iterable[int], leaving: Columns | None = None) -> int:
        """What is not used on these nodes, in Python's own integers: sums may be above an int64."""
        slots = list(nodes)
        if not slots:
            return 0
        has = self._nodes.allocatable.data[row][slots]
        room = self._nodes.classes.cards.get(row, row)
        taken = self._ledger.taken.data[room][slots]
        if leaving is not None:
            taken = taken - leaving.data[room][slots]
        return int(np.maximum(has - taken, 0).astype(object).sum())
