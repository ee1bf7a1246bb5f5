"""How well each node suits a pod's constraints, in a column: refused, or by how much preferred.

Many shapes share one `NodeConstraints`, most of them the empty one, so a column is kept for each
`NodeConstraints`, and only nodes that have changed since are looked at again.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.placement.constraints import NodeRefusal, node_refusal, preference, soft_taints

MOST_SOFT_TAINTS = 15
MOST_PREFERRED = 2**13 - 1
"""So that a standing that is not barred fits in 17 bits: see `placement`."""


class NodePreferences:
    """A column over the nodes for each `NodeConstraints`: below zero the refusal, else points."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._kept: dict[NodeConstraints, tuple[int, NDArray[np.int64]]] = {}

    def of(self, where: NodeConstraints) -> NDArray[np.int64]:
        """The column, up to date."""
        read, column = self._kept.get(where, (0, np.empty(0, dtype=np.int64)))
        if len(column) < len(self._nodes.slots):
            more = len(self._nodes.slots) - len(column)
            column = np.append(column, np.full(more, NodeRefusal.GONE, dtype=np.int64))
        if read != self._nodes.version:
            for slot in self._nodes.changed_since(read):
                column[slot] = self._points(where, slot)
        self._kept[where] = (self._nodes.version, column)
        return column

    def _points(self, where: NodeConstraints, slot: int) -> int:
        node = self._nodes.at(slot)
        if node is None:
            return NodeRefusal.GONE
        why = node_refusal(where, node)
        if why is not None:
            return why
        preferred = min(max(preference(where, node), 0), MOST_PREFERRED)
        liked = MOST_SOFT_TAINTS - min(soft_taints(where, node), MOST_SOFT_TAINTS)
        return preferred * (MOST_SOFT_TAINTS + 1) + liked
