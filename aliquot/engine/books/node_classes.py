"""The classes of nodes: on all nodes of one class a pod is charged the same to its quota.

What differs are the cards: how much each counts (GB of GPU memory), and of which model it is. Of
its model, a card is a second resource: what a pod takes of the cards of a node, its quota is
charged of the model as well. Only quotas have it; no pod requests it, and the room for it on a
node is that for the cards. A class that was once seen keeps its meaning.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.columns import Resources, Vector
from aliquot.engine.model.node import Node

ANY_CLASS = "*"
"""In place of a class: the most that a pod is charged on any class open to it. A gate that lets
that pass lets the pod pass on each of them."""
_NONE = -1
"""The class of a slot without a node."""


class NodeClasses:
    """The class of each node, in a column; and the models of the cards of each class."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._names: list[str] = []
        self._codes: dict[str, int] = {}
        self._of_slot: NDArray[np.int64] = np.full(8, _NONE, dtype=np.int64)
        self._facts: dict[str, tuple[str, Vector]] = {}
        """By class: the node class without models; and the row of cards, with that of a model."""
        self._masks: dict[tuple[str, ...], tuple[int, NDArray[np.bool_]]] = {}
        self._version = 0
        self.models: dict[int, tuple[int, ...]] = {}
        """By the row of cards, the rows of their models."""
        self.cards: dict[int, int] = {}
        """By the row of a model, that of the cards."""

    def set(self, slot: int, node: Node) -> None:
        """Note the class of the node in a slot."""
        if slot >= len(self._of_slot):
            more = np.full(max(slot + 1, len(self._of_slot)), _NONE, dtype=np.int64)
            self._of_slot = np.append(self._of_slot, more)
        name = node.charge_class
        if name not in self._codes:
            self._add(name, node)
        self._put(slot, self._codes[name])

    def drop(self, slot: int) -> None:
        """The node in this slot is gone."""
        self._put(slot, _NONE)

    def _put(self, slot: int, code: int) -> None:
        if self._of_slot.item(slot) != code:
            self._of_slot[slot] = code
            self._version += 1

    def _add(self, name: str, node: Node) -> None:
        self._codes[name] = len(self._names)
        self._names.append(name)
        row = self._resources.row
        pairs = tuple((row(cards), row(model)) for cards, model in node.models)
        self._facts[name] = node.node_class, pairs
        for cards, model in pairs:
            self.cards[model] = cards
            self.models[cards] = tuple(sorted({*self.models.get(cards, ()), model}))

    def plain(self, name: str) -> str:
        """The node class of a class, whatever the models of its cards."""
        return self._facts[name][0] if name in self._facts else name

    def models_of(self, name: str | None) -> Vector:
        """The rows of cards of a class, each with that of its model."""
        return self._facts[name][1] if name in self._facts else ()

    def mask(self, classes: Sequence[str], count: int) -> NDArray[np.bool_]:
        """Which of so many slots hold a node of one of these classes."""
        key = tuple(classes)
        version, found = self._masks.get(key, (-1, None))
        if found is None or version != self._version or len(found) != count:
            codes = [self._codes[name] for name in key if name in self._codes]
            found = np.zeros(count, dtype=bool)
            known = self._of_slot[:count]
            found[: len(known)] = np.isin(known, codes)
            if len(self._masks) > 4 * len(self._names) + 64:
                self._masks.clear()
            self._masks[key] = self._version, found
        return found

    def among(self, slots: NDArray[np.bool_]) -> list[str]:
        """The classes of the nodes in these slots, sorted."""
        codes = self._of_slot[: len(slots)][slots[: len(self._of_slot)]]
        return sorted(self._names[code] for code in np.unique(codes).tolist() if code != _NONE)
