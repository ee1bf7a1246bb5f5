"""Topology domains: nodes with the same value of a label, such as a zone, in columns.

Each node has the number of its domain; 0 stands for nodes without the label, and for those that do
not count. So what is counted by domain is one array, and what a domain means for its nodes is one
`take`.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Columns

Mask = NDArray[np.bool_]
NO_DOMAIN = 0


class Domains:
    """The domains of one label, of all nodes or of those that count."""

    def __init__(self) -> None:
        self.version = 0
        """Grows when a node has come into another domain."""
        self.of_slot: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """The domain of each node."""
        self.cells: list[int] = []
        """The same, as plain ints."""
        self.size = 1
        """How many numbers of domains there are, `NO_DOMAIN` included."""
        self.present: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """The domains that have nodes, in order."""

    def put(self, of_slot: NDArray[np.int64], size: int) -> None:
        """Set the domain of each node."""
        if self.size == size and np.array_equal(self.of_slot, of_slot):
            return
        self.version += 1
        self.of_slot, self.size = of_slot, size
        self.cells = of_slot.tolist()
        here = np.zeros(size, dtype=bool)
        here[of_slot] = True
        here[NO_DOMAIN] = False
        self.present = np.flatnonzero(here)

    @property
    def labelled(self) -> Mask:
        """The nodes that are in a domain."""
        found: Mask = self.of_slot != NO_DOMAIN
        return found


def fullest_that_fit(domains: Domains, free: Columns, wanted: Mapping[int, int]) -> list[int]:
    """The domains that have so much free of each resource, those with the least left first."""
    fits = np.zeros(domains.size, dtype=bool)
    fits[domains.present] = True
    left = np.zeros(domains.size)
    for row, amount in wanted.items():
        here = np.maximum(free.data[row, : len(domains.of_slot)], 0).astype(np.float64)
        sums = np.bincount(domains.of_slot, here, domains.size)
        fits &= sums >= amount
        left += sums / max(amount, 1)
    found: list[int] = np.flatnonzero(fits)[np.argsort(left[fits], kind="stable")].tolist()
    return found


class _Label:
    """The domains of one label key, and the number of each of its values."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.read = -1
        self.domains = Domains()


class TopologyLabels:
    """The domains of every label key that a rule names, following the nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._labels: dict[str, _Label] = {}

    def domains(self, key: str) -> Domains:
        """The domains of a label, up to date."""
        label = self._labels.get(key)
        if label is None:
            label = self._labels[key] = _Label()
        nodes = self._nodes
        if label.read != nodes.version or len(label.domains.of_slot) != len(nodes.slots):
            self._refresh(label, key)
        return label.domains

    def value(self, key: str, domain: int) -> str:
        """The label value of a domain."""
        return next(v for v, number in self._labels[key].numbers.items() if number == domain)

    def _refresh(self, label: _Label, key: str) -> None:
        nodes, old = self._nodes, label.domains.of_slot
        of_slot = np.zeros(len(nodes.slots), dtype=np.int64)
        of_slot[: len(old)] = old[: len(of_slot)]
        changed = nodes.changed_since(label.read) if label.read >= 0 else range(len(nodes.slots))
        for slot in changed:
            node = nodes.at(slot)
            value = None if node is None else dict(node.labels).get(key)
            number = NO_DOMAIN
            if value is not None:
                number = label.numbers.setdefault(value, len(label.numbers) + 1)
            of_slot[slot] = number
        label.read = nodes.version
        label.domains.put(of_slot, len(label.numbers) + 1)
