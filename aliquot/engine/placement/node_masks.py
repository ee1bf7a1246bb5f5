"""Which nodes match terms and selectors, as masks that are kept while no node's labels change.

For volumes, whose node affinity, topology and zones stand for many pods. The labels are only read
once a pod with volumes is placed.
"""

import numpy as np

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.selector import Requirement, Term
from aliquot.engine.placement.node_labels import Mask, NodeLabels

_MOST_KEPT = 1_024
"""Masks that are kept: at 5,000 nodes 5 KB each, 5 MB in all."""
_Labels = tuple[tuple[str, str], ...]


class NodeMasks:
    """Masks over the slots of the nodes; they must not be written to."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._labels = NodeLabels()
        self._known: dict[int, tuple[str, _Labels]] = {}
        """Name and labels of the node in each slot."""
        self._read = -1
        self.version = 0
        """Grows whenever a mask may differ."""
        self._kept: dict[object, Mask] = {}

    @property
    def count(self) -> int:
        """How many slots there are."""
        return self._labels.count

    def refresh(self) -> None:
        """Bring the labels up to date."""
        nodes = self._nodes
        if self._read == nodes.version and self._labels.count == len(nodes.slots):
            return
        differs = self._labels.count != len(nodes.slots)
        for slot in nodes.changed_since(max(self._read, 0)):
            node = nodes.at(slot)
            labels = None if node is None else (node.name, node.labels)
            if labels != self._known.get(slot):
                differs = True
                self._labels.put(slot, node)
                if labels is None:
                    del self._known[slot]
                else:
                    self._known[slot] = labels
        self._read, self._labels.count = nodes.version, len(nodes.slots)
        if differs:
            self.version += 1
            self._kept.clear()

    def every(self) -> Mask:
        """All slots."""
        return np.ones(self._labels.count, dtype=bool)

    def none(self) -> Mask:
        """No slot."""
        return np.zeros(self._labels.count, dtype=bool)

    def matching_any(self, terms: tuple[Term, ...]) -> Mask:
        """The nodes that match one of these terms."""
        found = self._kept.get(terms)
        if found is None:
            found = self._keep(terms, self._labels.matching_any(terms))
        return found

    def meeting(self, requirement: Requirement) -> Mask:
        """The nodes whose labels meet a requirement."""
        return self.matching_any((Term((requirement,)),))

    def _keep(self, key: object, mask: Mask) -> Mask:
        if len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = mask
        return mask
