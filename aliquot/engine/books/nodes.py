"""The nodes, in columns: allocatable resources, class, and place in the order of names."""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.node_classes import NodeClasses
from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.importance import Natural, natural
from aliquot.engine.model.node import Node
from aliquot.engine.model.quantity import LIMIT

_MOST_LOGGED = 1_024
"""Changes that are remembered, and four for each node more: readers are seldom further behind, and
then look at all nodes."""


class Nodes:
    """All nodes. A slot whose node is gone stays until nothing is booked on it."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.slots = Slots()
        self.known: dict[str, Node] = {}
        self.allocatable = Columns(resources, self.slots)
        self.classes = NodeClasses(resources)
        self.version = 0
        """Grows with every change of a node."""
        self._log: list[int | None] = []
        """The slots of nodes that were added, changed or removed, one for each version after
        `_logged_from`."""
        self._logged_from = 0
        self.deleted: dict[int, None] = {}
        """The slots of nodes that are being deleted."""
        self.total: dict[str, int] = {}
        """What is allocatable on all nodes together, by resource."""
        self.closed: dict[int, None] = {}
        """The slots of nodes that take no new pods."""
        self.lost: dict[int, None] = {}
        """The slots of nodes that have not been ready for too long."""
        self._not_ready: dict[str, int | None] = {}
        """The nodes that are not ready, and since when, once that is noted."""
        self._gone: dict[str, tuple[Node, int | None]] = {}
        """The nodes that are gone, as they were, and since when they are not ready or gone."""
        self.missing: dict[str, int] = {}
        """What these had, by resource."""
        self._rank: NDArray[np.int64] | None = None
        self._in_order: dict[str, Natural] = {}
        """The natural order of each name, nearly sorted by it: from when they were last ranked."""

    def set(self, node: Node) -> int:
        """Add a node, or change one; returns its slot."""
        _count(self.total, self.known.get(node.name), -1)
        _count(self.total, node, +1)
        if node.name not in self.known:
            self._rank = None
            self._forget(node.name)
        self.known[node.name] = node
        slot = self.slots.take(node.name)
        self.allocatable.fill(slot, self._resources.vector(node.allocatable, most=LIMIT - 1))
        self.classes.set(slot, node)
        if node.deleted:
            self.deleted[slot] = None
        else:
            self.deleted.pop(slot, None)
        if not node.takes_pods:
            self.closed[slot] = None
        else:
            self.closed.pop(slot, None)
        if not node.ready:
            since = self._not_ready.get(node.name)
            self._not_ready[node.name] = node.not_ready_since if since is None else since
        else:
            self._found(node.name, slot)
        self._note(slot)
        return slot

    def _found(self, name: str, slot: int) -> None:
        """The node is ready, or gone."""
        self._not_ready.pop(name, None)
        self.lost.pop(slot, None)

    def lose(self, now: int, lost_after: int) -> None:
        """Count nodes as lost that have not been ready, or are gone, for so long."""
        for name, (node, since) in list(self._gone.items()):
            if since is None:
                self._gone[name] = node, now
            elif since + lost_after <= now:
                self._forget(name)
                self._note(None)  # what is missing differs, but no node does
        for name, since in self._not_ready.items():
            if since is None:
                since = self._not_ready[name] = now
            slot = self.slots[name]
            if since + lost_after <= now and slot not in self.lost:
                self.lost[slot] = None
                self._note(slot)

    def next_loss(self, lost_after: int) -> int | None:
        """When the next node counts as lost."""
        waiting = [
            since + lost_after
            for name, since in self._not_ready.items()
            if since is not None and self.slots[name] not in self.lost
        ]
        waiting += [since + lost_after for _, since in self._gone.values() if since is not None]
        return min(waiting, default=None)

    def _forget(self, name: str) -> None:
        """The node is back, or gone for so long that it counts as lost."""
        _count(self.missing, self._gone.pop(name, (None, None))[0], -1)

    def remove(self, name: str) -> None:
        """Remove a node; its slot stays, with nothing allocatable, while pods are booked on it."""
        node = self.known.pop(name, None)
        if node is not None:
            _count(self.total, node, -1)
            self._rank = None
            slot = self.slots[name]
            self.allocatable.fill(slot, ())
            self.classes.drop(slot)
            self.closed.pop(slot, None)
            self.deleted.pop(slot, None)
            if slot not in self.lost:
                self._gone[name] = node, self._not_ready.get(name)
                _count(self.missing, node, +1)
            self._found(name, slot)
            self._note(slot)

    def gone(self) -> list[Node]:
        """The nodes that are gone, as they were, but not for so long that they count as lost."""
        return [node for node, _ in self._gone.values()]

    def changed_since(self, version: int) -> list[int]:
        """The slots whose nodes have changed since that version, or more of them."""
        if version < self._logged_from:
            return list(range(len(self.slots)))
        changed = dict.fromkeys(self._log[version - self._logged_from :])
        return [slot for slot in changed if slot is not None]

    def _note(self, slot: int | None) -> None:
        self.version += 1
        self._log.append(slot)
        if len(self._log) > _MOST_LOGGED + 4 * len(self.slots):
            self._log.clear()
            self._logged_from = self.version

    def at(self, slot: int) -> Node | None:
        """The node in this slot, if there is one now."""
        name = self.slots.names[slot]
        return None if name is None else self.known.get(name)

    def of_classes(self, classes: list[str]) -> NDArray[np.bool_]:
        """Which slots hold a node of one of these classes."""
        return self.classes.mask(classes, len(self.slots))

    @property
    def rank(self) -> NDArray[np.int64]:
        """The place of each slot in the order of node names, by which ties are broken."""
        if self._rank is None or len(self._rank) != len(self.slots):
            before = self._in_order
            came = {name: natural(name) for name in self.slots if name not in before}
            kept = {name: key for name, key in before.items() if name in self.slots}
            order = kept | came
            names = sorted(order, key=order.__getitem__)
            self._in_order = {name: order[name] for name in names}
            self._rank = np.zeros(len(self.slots), dtype=np.int64)
            self._rank[[self.slots[name] for name in names]] = np.arange(len(names))
        return self._rank


def _count(total: dict[str, int], node: Node | None, sign: int) -> None:
    """Add what a node has to a total, or take it out."""
    for resource, amount in node.allocatable if node is not None else ():
        total[resource] = total.get(resource, 0) + sign * min(amount, LIMIT)
