"""What the nodes have together, kept count of node by node.

Thousands of nodes report every few minutes, nearly always the same: adding all of them up for each
quota that is written would take longer than all the rest.
"""

from collections import Counter

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import Amounts
from aliquot.errors import InputError


class Capacity:
    """The sum over all nodes, of every resource."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._nodes: dict[str, Amounts] = {}
        self._total: Counter[str] = Counter()
        self._unknown: set[str] = set()

    @property
    def total(self) -> dict[str, int] | None:
        """What they have; None if there are none, or if one of them makes no sense."""
        return dict(self._total) if self._nodes and not self._unknown else None

    def put(self, manifest: Manifest) -> None:
        """A node is there, and has this much."""
        try:
            has = node(manifest, self._cards).allocatable
        except InputError:
            self.drop(manifest.name)
            self._unknown.add(manifest.name)
            return
        if self._nodes.get(manifest.name) != has:
            self.drop(manifest.name)
            self._nodes[manifest.name] = has
            self._total.update(dict(has))
        self._unknown.discard(manifest.name)

    def drop(self, name: str) -> None:
        """A node is not there any more."""
        self._total.subtract(dict(self._nodes.pop(name, ())))
        self._unknown.discard(name)
