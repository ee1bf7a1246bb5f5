"""What each node is worth by a pod's node constraints: refused, or how much preferred.

Many shapes share one `NodeConstraints`, most of them the empty one, so a column over the nodes is
kept for each `NodeConstraints`, and computed again only for nodes that have changed.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.placement.constraints import NodeRefusal, node_refusal, preference, soft_taints

MOST_SOFT_TAINTS = 15
MOST_PREFERRED = 2**13 - 1
"""Both saturate, so that points fit the 17 bits that a score has for them (see `best_node`)."""


class NodePreferences:
    """A column over the nodes for each `NodeConstraints`: below zero the refusal, else points."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._kept: dict[NodeConstraints, tuple[int, NDArray[np.int64]]] = {}

    def of(self, constraints: NodeConstraints) -> NDArray[np.int64]:
        """The column, up to date."""
        read, column = self._kept.get(constraints, (0, np.empty(0, dtype=np.int64)))
        if len(column) < len(self._nodes.slots):
            more = len(self._nodes.slots) - len(column)
            column = np.append(column, np.full(more, NodeRefusal.GONE, dtype=np.int64))
        if read != self._nodes.version:
            for slot in self._nodes.changed_since(read):
                column[slot] = self._points(constraints, slot)
        self._kept[constraints] = (self._nodes.version, column)
        return column

    def _points(self, constraints: NodeConstraints, slot: int) -> int:
        node = self._nodes.at(slot)
        if node is None:
            return NodeRefusal.GONE
        refusal = node_refusal(constraints, node)
        if refusal is not None:
            return refusal
        preferred = min(max(preference(constraints, node), 0), MOST_PREFERRED)
        tolerated = MOST_SOFT_TAINTS - min(soft_taints(constraints, node), MOST_SOFT_TAINTS)
        return preferred * (MOST_SOFT_TAINTS + 1) + tolerated
