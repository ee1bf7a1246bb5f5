"""What each node is worth by a pod's node constraints: refused, or how much preferred.

Many shapes share one `NodeConstraints`, most of them the empty one, so a column over the nodes is
kept for each `NodeConstraints`. It is computed for all nodes at once, from the columns of their
labels; where few nodes have changed since, for these alone.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.node import NodeConstraints, Taint
from aliquot.engine.placement.constraints import NodeRefusal, node_refusal, preference, tainted
from aliquot.engine.placement.node_labels import NodeLabels

MOST_SOFT_TAINTS = 15
MOST_PREFERRED = 2**13 - 1
"""Both saturate, so that points fit the 17 bits that a score has for them (see `best_node`)."""
_FEW_NODES = 8
"""Up to so many changed nodes are looked at one by one: that takes as long as a pass over all."""
_MOST_KEPT = 1_024
"""Columns that are kept: at 5,000 nodes 40 KB each, 40 MB in all."""
_Column = NDArray[np.int64]


class NodePreferences:
    """A column over the nodes for each `NodeConstraints`: below zero the refusal, else points."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._kept: dict[NodeConstraints, tuple[int, _Column]] = {}
        self._labels = NodeLabels()
        self._read = 0
        self._taints: dict[tuple[Taint, ...], dict[int, None]] = {}
        """The slots of nodes with these taints."""
        self._taints_of: dict[int, tuple[Taint, ...]] = {}
        self._groups: list[tuple[tuple[Taint, ...], _Column]] = []
        """The same, with the slots as arrays."""

    def of(self, constraints: NodeConstraints) -> _Column:
        """The column, up to date."""
        read, column = self._kept.pop(constraints, (0, np.empty(0, dtype=np.int64)))
        if read != self._nodes.version or len(column) != len(self._nodes.slots):
            column = self._refreshed(constraints, read, column)
        self._kept[constraints] = (self._nodes.version, column)
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return column

    def _refreshed(self, constraints: NodeConstraints, read: int, column: _Column) -> _Column:
        """The column, with the nodes that have changed since it was read."""
        changed, more = self._nodes.changed_since(read), len(self._nodes.slots) - len(column)
        if len(changed) > _FEW_NODES:
            return self._computed(constraints)
        column = np.append(column, np.full(more, NodeRefusal.GONE, dtype=np.int64))
        for slot in changed:
            column[slot] = self._points(constraints, slot)
        return column

    def _computed(self, constraints: NodeConstraints) -> _Column:
        """The points of all nodes."""
        self._refresh_labels()
        labels, preferred = self._labels, np.zeros(self._labels.count, dtype=np.int64)
        open_to = np.ones(labels.count, dtype=bool)
        for key, value in constraints.selector:
            open_to &= labels.with_value(key, value)
        if constraints.required is not None:
            open_to &= labels.matching_any(constraints.required)
        for weight, term in constraints.preferred:
            preferred += weight * labels.matching(term)
        points = np.clip(preferred, 0, MOST_PREFERRED) * (MOST_SOFT_TAINTS + 1)
        column = np.full(labels.count, NodeRefusal.GONE, dtype=np.int64)
        for taints, slots in self._groups:
            hard, soft = tainted(taints, constraints.tolerations)
            tolerated = MOST_SOFT_TAINTS - min(soft, MOST_SOFT_TAINTS)
            here = NodeRefusal.TAINT if hard else points[slots] + tolerated
            column[slots] = np.where(open_to[slots], here, NodeRefusal.SELECTOR)
        column[list(self._nodes.deleted)] = NodeRefusal.DELETED
        return column

    def _refresh_labels(self) -> None:
        """Bring the columns of labels and taints up to date."""
        for slot in self._nodes.changed_since(self._read):
            node, old = self._nodes.at(slot), self._taints_of.pop(slot, None)
            self._labels.put(slot, node)
            if old is not None:
                del self._taints[old][slot]
                if not self._taints[old]:
                    del self._taints[old]
            if node is not None:
                self._taints_of[slot] = node.taints
                self._taints.setdefault(node.taints, {})[slot] = None
        if self._read != self._nodes.version:
            found = self._taints.items()
            self._groups = [(each, np.fromiter(slots, dtype=np.int64)) for each, slots in found]
        self._labels.count, self._read = len(self._nodes.slots), self._nodes.version

    def _points(self, constraints: NodeConstraints, slot: int) -> int:
        node = self._nodes.at(slot)
        if node is None:
            return NodeRefusal.GONE
        refusal = node_refusal(constraints, node)
        if refusal is not None:
            return refusal
        preferred = min(max(preference(constraints, node), 0), MOST_PREFERRED)
        _, soft = tainted(node.taints, constraints.tolerations)
        tolerated = MOST_SOFT_TAINTS - min(soft, MOST_SOFT_TAINTS)
        return preferred * (MOST_SOFT_TAINTS + 1) + tolerated
