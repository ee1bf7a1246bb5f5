"""The quota tree: which quota a pod belongs to, and the bounds of every quota in columns.

Every quota has a slot in the columns. So have ROOT, the account of all quotas together, OUTSIDE,
the account of pods that belong to no quota, and one account for each lending group, whose min is
the sum of its quotas' mins. A flat list of quotas is a tree of one level. Quotas may be in several
trees, each with nodes of its own: such a tree has an account as well, for all its quotas together.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.membership import Membership
from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import LIMIT, add_amounts
from aliquot.engine.model.quota import MOST_LEVELS, Quota
from aliquot.engine.model.selector import Selectors
from aliquot.engine.model.tree import Tree
from aliquot.errors import TreeError

ROOT = ""
OUTSIDE = "<outside>"
_NOTHING = frozenset[int]()
NO_GROUP = -1
"""In `leaf_groups`: a quota without a lending group."""
Reach = tuple[Selectors, Selectors]
"""What selects the nodes that pods stay on, and those that they stay off; both may be empty."""


class QuotaTree:
    """All quotas, with min and max in columns."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.quotas: dict[str, Quota] = {}
        self.version = 0
        """Grows with every change of a quota."""
        self.trees: dict[str, Tree] = {}
        """The trees that have nodes of their own, by name."""
        self.tree_accounts: dict[str, int] = {}
        """The account of each of these, and of each other tree that a quota is or was in."""
        self.confines = False
        """Has a tree nodes, so that not every pod may run on every node?"""
        self.groups: dict[str, int] = {}
        """The accounts of the lending groups, by name."""
        self.slots = Slots()
        self.min = Columns(resources, self.slots)
        self.max = Columns(resources, self.slots, default=LIMIT)
        self.membership = Membership()
        self._paths: dict[str, tuple[int, ...]] = {}
        self._lineages: dict[str, tuple[int, ...]] = {}
        self._reaches: dict[str, Reach] = {}
        self._taken: Selectors = ()
        """What selects the nodes that trees have for themselves."""
        self._ceilings: dict[str, list[tuple[int, dict[int, int]]]] = {}
        self._closed: set[int] = set()
        self._named: dict[int, frozenset[int]] = {}
        self._unnamed: dict[int, NDArray[np.int64]] = {}
        self._sum_of_min: list[int] | None = None
        self._guaranteed: tuple[list[int], tuple[int, ...]] = [], ()
        """The sums of min for which the guaranteed rows were worked out, and these."""
        self._leaves: NDArray[np.int64] | None = None
        self.root = self.slots.take(ROOT)
        """The account that every quota counts in."""
        self._outside = (self.slots.take(OUTSIDE),)

    def set(self, quota: Quota) -> None:
        """Add a quota, or change one."""
        self.check(quota)
        self.remove(quota.name)
        self.quotas[quota.name] = quota
        slot = self.slots.take(quota.name)
        if quota.is_parent:
            self.slots.take(own_pods(quota.name))
        lows = self._resources.vector(quota.min)
        self._named[slot] = frozenset(row for row, _ in lows if row not in self._resources.models)
        self.min.fill(slot, lows)
        self.max.fill(slot, self._resources.vector(quota.max))
        for name, _ in (*quota.weight, *quota.deserved):
            self._resources.row(name)  # now, not when a policy first reads it
        self.membership.add(quota)
        if quota.tree:
            self._tree_account(quota.tree)
        if quota.closed:
            self._closed.add(slot)
        self._account_for(quota.group)

    def set_tree(self, tree: Tree) -> None:
        """Add a tree, or change one."""
        self.trees[tree.name] = tree
        self._tree_account(tree.name)
        self._trees_changed()
        for pool in tree.pools:
            self._resources.vector(pool.amounts)

    def remove_tree(self, name: str) -> None:
        """A tree has no nodes of its own any more."""
        self.trees.pop(name, None)
        self._trees_changed()

    def _trees_changed(self) -> None:
        self.version += 1
        self._reaches.clear()
        trees = [tree for _, tree in sorted(self.trees.items())]
        self._taken = tuple(each for tree in trees for each in tree.taken)
        self.confines = bool(self._taken) or any(tree.within for tree in trees)

    def _tree_account(self, name: str) -> int:
        found = self.tree_accounts.get(name)
        if found is None:
            found = self.tree_accounts[name] = self.slots.take(f"<tree {name}>")
        return found

    def tree_of(self, name: str) -> str:
        """The tree that a quota is in: that of the first level above it; empty if it is in none."""
        *_, top = self.ancestry(name)
        return top.tree

    def reach(self, quota: str | None) -> Reach:
        """Within which nodes a quota's pods stay, and beyond which, by the trees that there are.

        Pods outside the trees, of the system or without a quota, run anywhere.
        """
        if quota is None or self.quotas[quota].unshared:
            return (), ()
        found = self._reaches.get(quota)
        if found is None:
            tree = self.trees.get(self.tree_of(quota))
            within = () if tree is None else tree.within
            at_home = tree is not None and any(each.selector == () for each in tree.pools)
            found = within, () if within or at_home else self._taken
            self._reaches[quota] = found
        return found

    def remove(self, name: str) -> None:
        """Remove a quota; the caller frees its slot once its pods are booked elsewhere."""
        quota = self.quotas.pop(name, None)
        self.version += 1
        self._sum_of_min = self._leaves = None
        self._unnamed.clear()
        self._paths.clear()
        self._lineages.clear()
        self._reaches.clear()
        self._ceilings.clear()
        if quota is not None:
            self._closed.discard(self.slots[name])
            self.membership.remove(quota)
            self._account_for(quota.group)

    def _account_for(self, group: str) -> None:
        """Make the min of a lending group the sum of its quotas' mins."""
        if not group:
            return
        members = [quota for quota in self.quotas.values() if quota.group == group]
        if members:
            slot = self.groups[group] = self.slots.take(f"<group {group}>")
            total = self._resources.vector(add_amounts(*(quota.min for quota in members)))
            self.min.fill(slot, tuple((row, min(amount, LIMIT)) for row, amount in total))
        else:
            self.groups.pop(group, None)

    def quota_of(self, pod: Pod) -> str | None:
        """The quota that a pod belongs to, if any: see `membership`."""
        if pod.node is None and self.closed_to(pod) is not None:
            return None
        return self.membership.of(pod.quota, pod.namespace)

    def closed_to(self, pod: Pod) -> Quota | None:
        """The quota that a pod names, if it is closed to pods of its namespace."""
        return self.membership.closed(pod.quota, pod.namespace)

    def path(self, name: str | None) -> tuple[int, ...]:
        """The slots that a booking in this quota counts in: it, those above, tree, group, ROOT."""
        if name is None:
            return self._outside
        found = self._paths.get(name)
        if found is None:
            group = self.groups.get(self.quotas[name].group)
            accounts = (self.slots[ROOT],) if group is None else (group, self.slots[ROOT])
            tree = self.tree_of(name)
            above = (self._tree_account(tree),) if tree else ()
            found = (*self.lineage(name), *above, *accounts)
            self._paths[name] = found
        return found

    def lineage(self, name: str) -> tuple[int, ...]:
        """The slots of a quota and its ancestors: its path without group and ROOT."""
        found = self._lineages.get(name)
        if found is None:
            slots = tuple(self.slots[quota.name] for quota in self.ancestry(name))
            found = self._lineages[name] = slots
        return found

    def ceilings(self, name: str) -> list[tuple[int, dict[int, int]]]:
        """The slots of a quota and its ancestors that have a max, with that max by row."""
        found = self._ceilings.get(name)
        if found is None:
            found = self._ceilings[name] = []
            for quota in self.ancestry(name):
                limits = self._resources.vector(quota.max)
                bounds = {row: most for row, most in limits if most < LIMIT}
                if bounds:
                    found.append((self.slots[quota.name], bounds))
        return found

    def closed(self, name: str) -> list[int]:
        """The slots of a quota and its ancestors that are closed: no pod may start in them."""
        if not self._closed:
            return []
        return [slot for slot in self.lineage(name) if slot in self._closed]

    def ancestry(self, name: str) -> Iterator[Quota]:
        """The quota itself, then its parent, and so on to the top."""
        quota: Quota | None = self.quotas[name]
        while quota is not None:
            yield quota
            quota = self.quotas[quota.parent] if quota.parent is not None else None

    def below(self, name: str) -> list[str]:
        """All quotas below this one, at any depth."""
        found, level = [], {name}
        while level:
            level = {each.name for each in self.quotas.values() if each.parent in level}
            found += sorted(level)
        return found

    def leaves(self) -> Iterable[Quota]:
        """The quotas without children, by name."""
        parents = {quota.parent for quota in self.quotas.values()}
        return (self.quotas[name] for name in sorted(self.quotas) if name not in parents)

    @property
    def leaf_slots(self) -> NDArray[np.int64]:
        """The slots of the quotas without children."""
        slots: NDArray[np.int64] = self._leaf_columns()[0]
        return slots

    @property
    def leaf_groups(self) -> NDArray[np.int64]:
        """The slots of their lending groups, or NO_GROUP, in the order of `leaf_slots`."""
        groups: NDArray[np.int64] = self._leaf_columns()[1]
        return groups

    def _leaf_columns(self) -> NDArray[np.int64]:
        if self._leaves is None:
            pairs = [
                (self.slots[quota.name], self.groups.get(quota.group, NO_GROUP))
                for quota in self.leaves()
            ]
            self._leaves = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return self._leaves

    def names(self, slot: int, row: int) -> bool:
        """Does the min of the quota in this slot name the resource? A model does not count."""
        return row in self.named(slot)

    def named(self, slot: int) -> frozenset[int]:
        """The resources that the min of the quota in this slot names; models do not count."""
        return self._named.get(slot, _NOTHING)

    def unnamed(self, row: int) -> NDArray[np.int64]:
        """The slots of the leaves whose min does not name the resource."""
        found = self._unnamed.get(row)
        if found is None:
            slots = [slot for slot in self.leaf_slots.tolist() if not self.names(slot, row)]
            found = self._unnamed[row] = np.array(slots, dtype=np.int64)
        return found

    def guaranteed(self, row: int) -> int | None:
        """The sum of min over all leaves in this resource; None where no quota's min names it.

        None for cards of one model as well: no sum of their mins is ever a bound.
        """
        total = self.sums_of_min[row]
        return None if total < 0 else total

    def guaranteed_rows(self) -> tuple[int, ...]:
        """The resources that some quota's min names."""
        if self.sums_of_min is not self._guaranteed[0]:
            rows = tuple(row for row, total in enumerate(self.sums_of_min) if total >= 0)
            self._guaranteed = self.sums_of_min, rows
        return self._guaranteed[1]

    @property
    def sums_of_min(self) -> list[int]:
        """By row, what `guaranteed` says; below zero where that is None."""
        found = self._sum_of_min
        if found is None or len(found) < len(self._resources.names):
            found = self._sum_of_min = self._add_up()
        return found

    def _add_up(self) -> list[int]:
        sums: dict[str, int] = {}
        models = self._resources.models
        for quota in self.leaves():
            for resource, amount in quota.min:
                sums[resource] = sums.get(resource, 0) + amount
        names = enumerate(self._resources.names)
        return [-1 if row in models else sums.get(name, -1) for row, name in names]

    def check(self, quota: Quota) -> None:
        """Refuse a quota with the name of an account, an unknown parent, or itself above it.

        And one below too many others; quotas below one that moves are checked when they are set.
        """
        if quota.name.startswith("<"):
            raise TreeError(f"quota {quota.name}: a name cannot begin with <")
        ancestor, level = quota.parent, 1
        while ancestor is not None:
            level += 1
            if ancestor == quota.name:
                raise TreeError(f"quota {quota.name}: its parent {quota.parent} is its own child")
            if ancestor not in self.quotas:
                raise TreeError(f"quota {quota.name}: there is no parent quota {ancestor}")
            ancestor = self.quotas[ancestor].parent
        if level > MOST_LEVELS:
            raise TreeError(f"quota {quota.name}: level {level} of its tree, above {MOST_LEVELS}")

    def check_removal(self, name: str) -> None:
        """Refuse the removal of a quota with children, which would be left without a parent."""
        child = next((each for each in self.quotas.values() if each.parent == name), None)
        if child is not None:
            raise TreeError(f"quota {name}: it still has children, such as {child.name}")


def own_pods(parent: str) -> str:
    """The name of the account of a parent's own pods, apart from those of the quotas below it."""
    return f"<own pods of {parent}>"


def assignment(quota: Quota) -> tuple[object, ...]:
    """The fields of a quota that decide which pods belong to it and where they are charged."""
    return quota.namespaces, quota.parent, quota.group, quota.fallback, quota.open_to, quota.tree


def lowers_a_bound(quota: Quota, before: Quota) -> bool:
    """Is any min or max lower than before?"""
    low, high = dict(quota.min), dict(quota.max)
    return any(low.get(name, 0) < amount for name, amount in before.min) or any(
        name not in dict(before.max) or amount < dict(before.max)[name]
        for name, amount in high.items()
    )
