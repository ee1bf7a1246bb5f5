"""The candidates of a victim search: which pods to consider, and on which nodes, ever more of both.

Looking over all bound pods takes a handful of numpy calls; searching victims on a node does not. So
nodes are sifted first: those that would hold the pod if all eligible pods were evicted, the ones
that lack least first, and those where the least important eligible pods run.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.placement.ask import Ask
from aliquot.engine.policies.eligible import Eligible, Mask, Right, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.device_fit import DeviceRoom
from aliquot.engine.reclaim.rule_fit import RuleRoom
from aliquot.engine.state import State

_ALL_NODES = 24
"""Up to so many possible nodes are all searched, so that small clusters get the best of all."""
_BEST_NODES = 3
"""How many of more nodes are searched at first: each costs a search for a victim set, and a
decision at 5,000 nodes must take milliseconds."""
LAST_NODES = 500
"""How many nodes are searched before giving up, only if the first ones had no set: it bounds the
time of a search that finds nothing."""
_MOST_ELSEWHERE = 24
"""How many pods on other nodes are considered at first: few enough for an exact search beside the
pods of a node (`victim_set` is exact up to 64 units)."""
_FIRST_IN_ORDER = (64, 1_024)
"""How many pods are considered at first and then, where the policy has an order of eviction of its
own: as many as an exact search takes, and few enough to look through their nodes."""
_LAST_ELSEWHERE = 5_000
"""How many pods on other nodes are considered if the first ones had no set: it bounds the cost of
pricing them one by one."""


class Candidates:
    """The pods of an eligible group, and the nodes on which the claim could start."""

    def __init__(
        self,
        state: State,
        claim: Claim,
        eligible: Eligible,
        gpus: DeviceRoom,
        rules: RuleRoom,
        classes: list[str] | None,
    ) -> None:
        self._state = state
        self._claim = claim
        self._eligible = eligible
        self._gpus = gpus
        self._rules = rules
        self._classes = classes
        self._charged_pods: dict[Right, Mask] = {}
        by_priority = state.bound_pods.priority
        self.importance = by_priority if eligible.order is None else eligible.order.levels
        """The least important pods are considered first."""
        self.evictable = eligible.evictable & self._within_limits()
        self.protected: Mask | None = None
        """Those of them whose disruption budgets allow no further eviction; None where none are."""
        self._planned: dict[tuple[int, int], int] = {}
        """Room, by row and node, that earlier pods of the claim take, less what victims free."""
        self._free: dict[int, NDArray[np.int64]] = {}
        """By row, what every node has free with that plan carried out."""

    def _within_limits(self) -> Mask:
        """The pods whose charge is within the limit of their quota."""
        running = self._state.bound_pods
        mask: Mask = np.ones_like(self._eligible.evictable)
        for row in {row for account, row in self._eligible.limits if isinstance(account, int)}:
            most = self._limit_by_quota(row)
            mask &= running.charge.data[row] <= most[running.quota]
        return mask

    def _limit_by_quota(self, row: int) -> NDArray[np.int64]:
        """The limit of each quota in a resource; the last place is for slots without a pod."""
        most = np.full(len(self._state.tree.slots) + 1, LIMIT, dtype=np.int64)
        for (slot, limited), amount in self._eligible.limits.items():
            firm = amount <= 0 or (slot, row) not in self._eligible.soft
            if isinstance(slot, int) and limited == row and firm:
                most[slot] = amount
        return most

    def widening(self) -> Iterator[tuple[Mask, int, int]]:
        """The pods to consider, how many of them on other nodes, and how many nodes: ever more.

        First without pods of exhausted disruption budgets, then with them, each time by rising
        importance; at last on very many nodes.
        """
        evictable, importance = self.evictable, self.importance
        if not evictable.any():
            yield evictable, 0, _BEST_NODES
            return
        exhausted = self._budget_exhausted()
        self.protected = exhausted if exhausted.any() else None
        for base in ([] if self.protected is None else [evictable & ~exhausted]) + [evictable]:
            for level in self._levels(base):
                these = base & (importance <= level)
                yield these, _MOST_ELSEWHERE, _BEST_NODES
                if these.sum() > _MOST_ELSEWHERE:
                    yield these, _LAST_ELSEWHERE, _BEST_NODES
        yield evictable, _LAST_ELSEWHERE, LAST_NODES

    def _levels(self, pods: Mask) -> Iterator[int]:
        """Up to which importance pods are considered, step by step: mostly one step is enough."""
        left = self.importance[pods]
        if self._eligible.order is not None:
            ranked = np.sort(left)
            steps = sorted({min(number, len(ranked)) for number in (*_FIRST_IN_ORDER, len(ranked))})
            yield from (int(ranked[number - 1]) for number in steps if number)
            return
        while len(left):
            level = int(left.min())
            yield level
            left = left[left > level]

    def least_important(self, pods: Mask, most: int) -> list[int]:
        """At most `most` of these pods, by slot: those that are to be evicted first."""
        if self._eligible.order is None:
            return self._state.bound_pods.least_important(pods, most)
        slots = np.flatnonzero(pods)
        in_order = np.argsort(self._eligible.order.places[slots])
        least: list[int] = slots[in_order[:most]].tolist()
        return least

    def _budget_exhausted(self) -> Mask:
        """The evictable pods whose disruption budgets allow no further eviction."""
        state, protected = self._state, np.zeros_like(self.evictable)
        running = state.bound_pods
        for namespace in state.budgets.exhausted_in():
            if namespace not in running.namespace_slots:
                continue
            owner = running.namespace_slots[namespace]
            of_namespace = self.evictable & (running.namespace == owner)
            for slot in np.flatnonzero(of_namespace).tolist():
                pod = state.pods[str(running.slots.names[slot])]
                protected[slot] = state.budgets.exhausted(pod)
        return protected

    def nodes(self, ask: Ask, rights: Rights, evictable: Mask, most: int) -> list[int]:
        """The nodes that would hold the pod if all these were evicted; the least short first."""
        if not self._rights_reachable(rights, evictable):
            return []
        possible = self._state.placement.open_nodes(ask)
        if self._eligible.nodes is not None:
            possible &= self._eligible.nodes
        if self._classes is not None and ask.by_class:
            possible &= self._state.nodes.of_classes(self._classes)
        count = len(possible)
        shortage = np.zeros(count)
        pods = np.flatnonzero(evictable)
        where = self._state.bound_pods.node.take(pods)
        for row, amount in ask.room:
            free = self.free(row)[:count]
            possible &= free + self._freed(row, pods, where, count, most) >= amount
            shortage += np.maximum(amount - free, 0) / amount
        if ask.gpu is not None:
            possible &= self._device_nodes(ask, evictable, shortage)
        if ask.rule_set is not None:
            possible &= self._rules.sift(evictable, shortage)
        found = np.flatnonzero(possible)
        order = np.lexsort((self._state.nodes.rank[found], shortage[found]))
        ordered: list[int] = found[order].tolist()
        return ordered if len(ordered) <= _ALL_NODES else self._promising(ordered, evictable, most)

    def _device_nodes(self, ask: Ask, evictable: Mask, shortage: NDArray[np.float64]) -> Mask:
        """The nodes with devices for the pod; their shortage of devices is added to `shortage`."""
        found, short = self._gpus.nodes(ask, evictable)
        shortage[found] += short[found]
        return found

    def _freed(
        self,
        row: int,
        pods: NDArray[np.int64],
        where: NDArray[np.int64],
        count: int,
        most: int,
    ) -> NDArray[np.float64]:
        """What would come free on every node if all these pods, by slot, were evicted.

        As floats: large enough for any sum, and exact enough to sift nodes. The limits of quotas
        are applied only when very many nodes are searched.
        """
        if not len(pods):
            return np.zeros(count)
        room = self._state.bound_pods.room.data[row].take(pods).astype(np.float64)
        if most < LAST_NODES or not any(limited == row for _, limited in self._eligible.limits):
            return np.bincount(where, room, count).astype(np.float64, copy=False)
        limit = self._limit_by_quota(row)
        keys = where * len(limit) + self._state.bound_pods.quota.take(pods)
        pairs, of = np.unique(keys, return_inverse=True)
        given = np.minimum(np.bincount(of, room), limit[pairs % len(limit)])
        return np.bincount(pairs // len(limit), given, count).astype(np.float64, copy=False)

    def _promising(self, nodes: list[int], evictable: Mask, most: int) -> list[int]:
        """Of many nodes, the least short, and those where the least important pods run."""
        running, possible = self._state.bound_pods, set(nodes)
        least = self.least_important(evictable, 4 * _BEST_NODES)
        hosts = [node for node in running.node[least].tolist() if node in possible]
        return list(dict.fromkeys([*hosts[:_BEST_NODES], *nodes[:most]]))

    def free(self, row: int) -> NDArray[np.int64]:
        """What every node has free of a resource, with the plan for earlier pods carried out.

        It is asked for each node that is looked at, and worked out once: a search changes nothing.
        """
        free = self._free.get(row)
        if free is None:
            free = self._state.placement.free_soon(row, self._state.leaving.room)
            for (moved_row, node), amount in self._planned.items():
                if moved_row == row:
                    free[node] -= amount
            self._free[row] = free
        return free

    @property
    def has_plan(self) -> bool:
        """Is there a plan for earlier pods of the claim?"""
        return bool(self._planned)

    def plan(self, row: int, node: int, amount: int) -> None:
        """Take this much room of a node for the plan; below zero, give back what a victim frees."""
        self._planned[row, node] = self._planned.get((row, node), 0) + amount
        self._free.pop(row, None)

    def _rights_reachable(self, rights: Rights, evictable: Mask) -> bool:
        charge = self._state.bound_pods.charge.data
        return all(
            int(charge[right.row][evictable & self.charged_pods(right)].sum()) >= amount
            for right, amount in rights.items()
        )

    def charged_pods(self, right: Right) -> Mask:
        """The pods charged in this account: those of its quota and of the quotas below it."""
        found = self._charged_pods.get(right)
        if found is None:
            tree = self._state.tree
            quotas = [tree.slots[name] for name in tree.quotas if right.slot in tree.path(name)]
            below = np.zeros(len(tree.slots) + 1, dtype=bool)
            below[quotas] = True
            below[list(self.outside_sum(right))] = False
            found = self._charged_pods[right] = below[self._state.bound_pods.quota]
        return found

    def outside_sum(self, right: Right) -> set[int]:
        """The quotas whose use does not count in this account, for this claim.

        They are those whose min does not name the resource, in the sum of min; not for a claim
        whose own quota is one of them (see `capacity.borrowing`).
        """
        tree, quota = self._state.tree, self._claim.quota
        if right.slot != tree.slots[ROOT] or quota is None:
            return set()
        named = tree.names(tree.slots[quota], right.row)
        return set(tree.unnamed(right.row).tolist()) if named else set()
