"""What trees with nodes of their own have to share, and so what is left to all other quotas.

The nodes of a pool are a mask over the slots of nodes, its total a sum; both follow the nodes that
change. *Lent* and *guaranteed* mean what they mean for all nodes together (see `capacity`). A pool
shares its ratio of that, and no more than pods outside the trees (the system's) leave there. What
no tree takes for itself, other quotas share. Nothing is kept until there is a tree.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.capacity import Capacity
from aliquot.engine.books.ledger import Booking, Ledger, Stage
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Columns, Resources, exact_sum
from aliquot.engine.model.node import Node
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.tree import NodePool

Sums = dict[int, int]
"""Amounts by row."""


class OutsideUse:
    """What pods outside the trees, of the system and without a quota, use of each node."""

    def __init__(
        self, resources: Resources, nodes: Nodes, ledger: Ledger, quotas: QuotaTree
    ) -> None:
        self._nodes = nodes
        self._ledger = ledger
        self._quotas = quotas
        self.columns = Columns(resources, nodes.slots)
        self.version = 0
        """Grows with every change."""
        self._unshared: frozenset[str] = frozenset()
        """The quotas outside the trees for which it was added up."""
        self._is_exact = False

    def post(self, booking: Booking, sign: int, held: bool) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        if not held and self._is_outside(booking.quota) and booking.node is not None:
            slot = self._nodes.slots[booking.node]
            self._is_exact &= self.columns.add(slot, booking.charge, sign)
            self.version += 1

    def refresh(self) -> None:
        """Add up anew where other quotas are outside the trees now, or a sum was too large."""
        unshared = frozenset(each.name for each in self._quotas.quotas.values() if each.unshared)
        if unshared == self._unshared and self._is_exact:
            return
        self._unshared, self._is_exact = unshared, True
        self.version += 1
        self.columns.data[:] = 0
        for quota in (None, *sorted(unshared)):
            for uid in self._ledger.by_quota.get(quota, ()):
                entry = self._ledger.entries[uid]
                if entry.stage > Stage.HELD:
                    self.columns.add(entry.node, entry.booking.charge, +1)

    def _is_outside(self, quota: str | None) -> bool:
        return quota is None or quota in self._unshared


class _Pool:
    """One pool of a tree, and the sums of what its nodes have."""

    def __init__(self, tree: str, pool: NodePool) -> None:
        self.tree = tree
        self.pool = pool
        self.total: Sums = {}
        self.missing: Sums = {}
        """What nodes of it had that are gone, but not for long."""


class TreeCapacity:
    """What each tree has to share, by row."""

    def __init__(
        self,
        resources: Resources,
        nodes: Nodes,
        ledger: Ledger,
        quotas: QuotaTree,
        capacity: Capacity,
    ) -> None:
        self._resources = resources
        self._nodes = nodes
        self._ledger = ledger
        self._quotas = quotas
        self._capacity = capacity
        self._outside: OutsideUse | None = None
        self._pools: list[_Pool] = []
        self._masks: NDArray[np.bool_] = np.zeros((0, 0), dtype=bool)
        """By pool, which slots hold one of its nodes."""
        self._counted: dict[int, Node] = {}
        """The nodes as they are counted, by slot."""
        self._read = -1
        self._quotas_read = -1

    @property
    def version(self) -> int:
        """Grows whenever any sum may differ, other than by use on nodes that take no new pods."""
        return 0 if self._outside is None else self._outside.version

    def refresh(self) -> None:
        """Bring masks and sums up to date."""
        if self._quotas_read != self._quotas.version:
            self._read_trees()
        if self._outside is not None:
            self._outside.refresh()
            self._read_nodes()

    def lent(self, row: int) -> dict[str, int]:
        """What each tree has to lend; under "", what all other quotas have."""
        return self._shared(row, self._capacity.lent(row), self._nodes.closed, guaranteed=False)

    def guaranteed(self, row: int) -> dict[str, int]:
        """What the guarantees of each tree are made of; under "", those of all other quotas."""
        return self._shared(row, self._capacity.guaranteed(row), self._nodes.lost, guaranteed=True)

    def nodes_of(self, tree: str) -> NDArray[np.bool_]:
        """Which slots hold a node of this tree."""
        self.refresh()
        found = np.zeros(len(self._nodes.slots), dtype=bool)
        for index, each in enumerate(self._pools):
            if each.tree == tree:
                found |= self._masks[index, : len(found)]
        return found

    def sums(self, tree: str) -> dict[str, int]:
        """What all nodes of a tree have together, whatever runs there and whatever is shared."""
        self.refresh()
        found: dict[str, int] = {}
        for each in self._pools:
            for row, amount in each.total.items() if each.tree == tree else ():
                name = self._resources.names[row]
                found[name] = found.get(name, 0) + amount
        return found

    def _shared(
        self, row: int, total: int, unusable: Iterable[int], guaranteed: bool
    ) -> dict[str, int]:
        shared = dict.fromkeys(self._quotas.tree_accounts, 0)
        slots = np.fromiter(unusable, np.int64)
        for index, each in enumerate(self._pools):
            part, whole = self._part(index, row, slots, guaranteed)
            shared[each.tree] += part
            if each.pool.apart:
                total -= whole
        shared[""] = total
        return shared

    def _part(
        self, index: int, row: int, unusable: NDArray[np.int64], guaranteed: bool
    ) -> tuple[int, int]:
        """What one pool shares of a resource, and what its nodes have of it for any quota at all.

        What is idle on unusable nodes is not there. What a ratio leaves out is no quota's share:
        pods of other quotas stay off these nodes.
        """
        each = self._pools[index]
        if each.pool.selector is None:
            stated = dict(self._resources.vector(each.pool.amounts)).get(row, 0)
            return stated, stated
        has = each.total.get(row, 0) + (each.missing.get(row, 0) if guaranteed else 0)
        if unusable.size:
            has -= self._capacity.idle_on(row, unusable[self._masks[index, unusable]].tolist())
        assert self._outside is not None
        outside = self._outside.columns.data[row]
        taken = exact_sum(outside[: self._masks.shape[1]][self._masks[index, : len(outside)]])
        left = max(has - taken, 0)
        return min(each.pool.part(has), left), left

    def _read_trees(self) -> None:
        self._quotas_read = self._quotas.version
        pools = [
            (tree.name, pool)
            for _, tree in sorted(self._quotas.trees.items())
            for pool in tree.pools
        ]
        if pools == [(each.tree, each.pool) for each in self._pools]:
            return
        if self._outside is None:
            self._outside = OutsideUse(self._resources, self._nodes, self._ledger, self._quotas)
            self._ledger.node_tallies.append(self._outside)
        self._pools = [_Pool(*each) for each in pools]
        self._masks = np.zeros((len(pools), 0), dtype=bool)
        self._counted, self._read = {}, -1

    def _read_nodes(self) -> None:
        nodes = self._nodes
        if self._read == nodes.version and self._masks.shape[1] >= len(nodes.slots):
            return
        width = len(nodes.slots)
        if self._masks.shape[1] < width:
            grown = np.zeros((len(self._pools), 2 * width), dtype=bool)
            grown[:, : self._masks.shape[1]] = self._masks
            self._masks = grown
        changed = nodes.changed_since(self._read) if self._read >= 0 else range(width)
        for slot in changed:
            self._count(slot, nodes.at(slot))
        self._read = nodes.version
        for each in self._pools:
            each.missing.clear()
        for gone in nodes.gone():
            for index in self._indices(gone):
                self._add(self._pools[index].missing, gone, +1)

    def _count(self, slot: int, node: Node | None) -> None:
        """Count the node of a slot as it is now."""
        before = self._counted.pop(slot, None)
        if before is not None:
            for index in np.flatnonzero(self._masks[:, slot]).tolist():
                self._add(self._pools[index].total, before, -1)
        self._masks[:, slot] = False
        for index in self._indices(node) if node is not None else ():
            self._masks[index, slot] = True
            self._add(self._pools[index].total, node, +1)
        if node is not None:
            self._counted[slot] = node

    def _indices(self, node: Node) -> list[int]:
        """The pools of a node: of each tree the first that selects it."""
        found: dict[str, int] = {}
        for index, each in enumerate(self._pools):
            if each.tree not in found and each.pool.selects(node):
                found[each.tree] = index
        return list(found.values())

    def _add(self, sums: Sums, node: Node | None, sign: int) -> None:
        for resource, amount in node.allocatable if node is not None else ():
            row = self._resources.row(resource)
            sums[row] = sums.get(row, 0) + sign * min(amount, LIMIT)
