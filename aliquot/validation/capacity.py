"""The total capacity of all nodes, kept as a running sum.

Thousands of nodes report every few minutes, nearly always the same: summing them up for each write
to a quota would take longer than the rest of the webhook's verdict. And a timeline may bring them
one by one: summing them up after each would take longer than the simulation.
"""

from collections import Counter

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import Amounts
from aliquot.errors import InputError


class Capacity:
    """The sum of all nodes' allocatable, by resource."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._nodes: dict[str, Amounts] = {}
        self._total: Counter[str] = Counter()
        self._invalid: set[str] = set()

    @property
    def total(self) -> dict[str, int] | None:
        """The sum; None if there is no node, or if one is invalid."""
        return dict(self._total) if self._nodes and not self._invalid else None

    def put(self, manifest: Manifest) -> None:
        """A node was created or changed."""
        try:
            allocatable = node(manifest, self._cards).allocatable
        except InputError:
            self.drop(manifest.name)
            self._invalid.add(manifest.name)
            return
        if self._nodes.get(manifest.name) != allocatable:
            self.drop(manifest.name)
            self._nodes[manifest.name] = allocatable
            self._total.update(dict(allocatable))
        self._invalid.discard(manifest.name)

    def drop(self, name: str) -> None:
        """A node was deleted."""
        self._total.subtract(dict(self._nodes.pop(name, ())))
        self._invalid.discard(name)
