"""The order in which pods of queues are evicted: the order of turns, read backwards.

Among queues, the one of the lowest priority gives first, then the one that uses most of what it
deserves. In a queue, the namespace with the largest share over weight. In a namespace, the job of
the lowest priority; of equal priority, pods beyond the core of a gang, that of the largest share
first, then single pods, then cores, which are evicted as a whole; of these the pod that started
last. Between equal queues or namespaces, the one that had its last turn most recently.

Every eviction changes the shares, so what is read backwards is a sequence of turns: a pod has the
share that its namespace has once all that precede it there are gone. These shares only fall along
the sequence of a namespace, so merging the sequences is sorting by them, which numpy does for all
pods at once. Shares are compared as floats: those of amounts below 2**53 are equal exactly if the
fractions are.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.policies.eligible import EvictionOrder, Mask
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State

Slots = NDArray[np.int64]
"""Slots of bound pods, those that are evicted first at the front."""
Floats = NDArray[np.float64]

_BEYOND_CORE, _SINGLE, _CORE = range(3)
"""The kinds of pods, in the order in which those of equal priority are evicted."""


class ReturnOrder:
    """The order of eviction by the shares of this moment."""

    def __init__(
        self,
        state: State,
        deserved: Deserved,
        drf: DominantShares,
        last_turn: Callable[[Group], int],
        priority_bands: bool,
    ) -> None:
        self._state = state
        self._pods = state.bound_pods
        self._deserved = deserved
        self._drf = drf
        self._last_turn = last_turn
        self._priority_bands = priority_bands

    def of(self, pods: Mask) -> EvictionOrder:
        """The order of these pods; all others come after them."""
        queues = np.unique(self._pods.quota[pods]).tolist()
        kinds = np.full(len(pods), _SINGLE, dtype=np.int64)
        merged = self._merged({queue: self._in_queue(queue, pods, kinds) for queue in queues})
        places = np.full(len(pods), len(merged), dtype=np.int64)
        places[merged] = np.arange(len(merged))
        levels = places.copy()
        levels[merged] = self._levels(merged, kinds[merged])
        return EvictionOrder(places, levels)

    def _levels(self, slots: Slots, kinds: Slots) -> Slots:
        """A number for each run of pods of one namespace in one queue, of one priority and kind.

        Of pods beyond cores also of one gang. If all pods of a run are of one size, fewer of them
        never do, and each has a number of its own; not so cores, which are evicted as a whole.
        """
        pods = self._pods
        gangs = np.where(kinds == _BEYOND_CORE, pods.gang[slots], _SINGLE)
        columns = (pods.quota, pods.namespace, pods.priority)
        facts = np.stack([*(column[slots] for column in columns), kinds, gangs])
        begins = np.ones(len(slots), dtype=bool)
        begins[1:] = (facts[:, 1:] != facts[:, :-1]).any(axis=0)
        charge, differs = pods.charge.data[:, slots], np.zeros(len(slots), dtype=bool)
        differs[1:] = (charge[:, 1:] != charge[:, :-1]).any(axis=0)
        runs = np.cumsum(begins)
        mixed = np.bincount(runs, differs & ~begins, len(slots) + 1) > 0
        return np.cumsum(begins | ~(mixed[runs] | (kinds == _CORE)))

    def _in_queue(self, queue: int, pods: Mask, kinds: Slots) -> Slots:
        """These pods of a queue, in order; their kinds are filled in."""
        slots = self._pods.by_importance(queue)[::-1]
        name = str(self._state.tree.slots.names[queue])
        return self._by_namespace(name, self._by_job(slots[pods[slots]], kinds))

    def _by_job(self, slots: Slots, kinds: Slots) -> Slots:
        """By priority; of equal priority by kind, then those that started last.

        The pods come by importance, the least important first, so that this decides between equals.
        """
        pods = self._pods
        slots = slots[np.lexsort((-pods.started[slots], pods.priority[slots]))]
        gangs = pods.gang[slots]
        if not (gangs >= 0).any():
            return slots
        needs = self._core_sizes(gangs)
        beyond_core = self._beyond_core(gangs, needs)
        kinds[slots[needs > 1]] = _CORE
        kinds[slots[beyond_core]] = _BEYOND_CORE
        share = np.where(beyond_core, self._gang_shares(slots, gangs), 0)
        return slots[np.lexsort((-share, kinds[slots], pods.priority[slots]))]

    def _core_sizes(self, gangs: Slots) -> Floats:
        """How many running pods each pod's gang needs; 0 of a gang that does not exist."""
        sizes = {}
        for gang in np.unique(gangs[gangs >= 0]).tolist():
            known = self._state.gangs.known.get(self._pods.gang_slots.name(gang))
            if known is not None:
                sizes[gang] = max(known.min_member - sum(number for _, number in known.done), 0)
        return _each(gangs, sizes)

    def _beyond_core(self, gangs: Slots, needs: Floats) -> Mask:
        """Which of these pods, each given by its gang, their gangs could lose and still run."""
        present = np.bincount(self._pods.gang[self._pods.gang >= 0])
        before = _before(gangs, np.ones((1, len(gangs))))[0]
        found: Mask = (gangs >= 0) & (before < present[gangs] - needs)
        return found

    def _gang_shares(self, slots: Slots, gangs: Slots) -> Floats:
        """The dominant share of each pod's gang when it is the pod's turn to go."""
        name, found = self._pods.gang_slots.name, np.unique(gangs[gangs >= 0]).tolist()
        has = {gang: self._drf.of_gang(name(gang)) for gang in found}
        return self._shares(slots, gangs, has, dict.fromkeys(has, 1))

    def _by_namespace(self, queue: str, slots: Slots) -> Slots:
        """By the share over weight that each pod's namespace has when it is the pod's turn."""
        namespaces = self._pods.namespace[slots]
        found = np.unique(namespaces).tolist()
        if len(found) == 1:
            return slots
        names = {each: self._pods.namespace_slots.name(each) for each in found}
        has = {each: self._drf.of_namespace(queue, name) for each, name in names.items()}
        weights = {each: self._drf.weight(name) for each, name in names.items()}
        share = self._shares(slots, namespaces, has, weights)
        turns = {each: self._last_turn(("namespace", queue, name)) for each, name in names.items()}
        keys = (-_each(namespaces, turns), -share)
        return slots[np.lexsort((*keys, *self._bands(slots)))]

    def _shares(
        self,
        slots: Slots,
        owners: Slots,
        has: Mapping[int, Mapping[int, int]],
        weights: Mapping[int, int],
    ) -> Floats:
        """The dominant share over weight of each pod's owner, without the pods before it."""
        totals = self._drf.totals
        rows = sorted({row for sums in has.values() for row in sums if row in totals})
        share = np.zeros(len(slots))
        if not rows:
            return share
        before = _before(owners, self._charges(rows, slots))
        weight = np.maximum(_each(owners, weights), 1)
        for place, row in enumerate(rows):
            amounts = {owner: sums.get(row, 0) for owner, sums in has.items()}
            left = _each(owners, amounts) - before[place]
            total = totals[row]
            part = left / (float(total) * weight) if total else (left > 0) / weight
            np.maximum(share, part, out=share)
        return share

    def _merged(self, sequences: dict[int, Slots]) -> Slots:
        """The pods of all queues, in order: queues below one are merged before it is compared."""
        tree = self._state.tree
        lineages = {queue: tree.lineage(str(tree.slots.names[queue])) for queue in sequences}
        above = {q: line[i + 1 :] for line in lineages.values() for i, q in enumerate(line)}
        for depth in range(max(map(len, lineages.values()), default=0), 1, -1):
            families: dict[int, dict[int, Slots]] = {}
            for queue in [q for q in sequences if len(above[q]) == depth - 1]:
                families.setdefault(above[queue][0], {})[queue] = sequences.pop(queue)
            for parent, family in families.items():
                own = sequences.get(parent, np.zeros(0, dtype=np.int64))
                sequences[parent] = np.concatenate((own, self._by_queue(family)))
        return self._by_queue(sequences)

    def _by_queue(self, sequences: dict[int, Slots]) -> Slots:
        """The pods of sibling queues, by the queue's priority, then its use of what it deserves."""
        names, quotas = self._state.tree.slots.names, self._state.tree.quotas
        siblings = sorted(sequences, key=lambda queue: str(names[queue]), reverse=True)
        if not siblings:
            return np.zeros(0, dtype=np.int64)
        slots = np.concatenate([sequences[queue] for queue in siblings])
        if len(siblings) == 1:
            return slots
        owners = np.repeat(np.array(siblings), [len(sequences[queue]) for queue in siblings])
        priority = {queue: quotas[str(names[queue])].priority for queue in siblings}
        turns = {queue: self._last_turn(("queue", str(names[queue]))) for queue in siblings}
        use = self._use_of_deserved(slots, owners, siblings)
        keys = (-_each(owners, turns), -use, _each(owners, priority))
        return slots[np.lexsort((*keys, *self._bands(slots)))]

    def _use_of_deserved(self, slots: Slots, owners: Slots, queues: Sequence[int]) -> Floats:
        """What each pod's queue uses of what it deserves, without the pods before it."""
        deserved, rows = self._deserved, sorted(self._deserved.rows)
        most = np.zeros(len(slots))
        before = _before(owners, self._charges(rows, slots))
        for place, row in enumerate(rows):
            used = {queue: deserved.after_leaving(row, queue) for queue in queues}
            share = _each(owners, {queue: deserved.get(row, queue) for queue in queues})
            left = _each(owners, used) - before[place]
            part = np.where(left > 0, np.inf, 0.0)
            np.divide(left, share, out=part, where=share > 0)
            np.maximum(most, part, out=most)
        return most

    def _charges(self, rows: list[int], slots: Slots) -> Floats:
        found: Floats = self._pods.charge.data[np.ix_(np.array(rows), slots)].astype(np.float64)
        return found

    def _bands(self, slots: Slots) -> tuple[Slots, ...]:
        """With `priorityBands`, priority comes before all shares."""
        return (self._pods.priority[slots],) if self._priority_bands else ()


def _before(owners: Slots, amounts: Floats) -> Floats:
    """By row, what precedes each pod of the pods of the same owner."""
    by_owner = np.argsort(owners, kind="stable")
    sums = np.zeros((amounts.shape[0], len(owners) + 1))
    np.cumsum(amounts[:, by_owner], axis=1, out=sums[:, 1:])
    sorted_owners = owners[by_owner]
    starts = np.searchsorted(sorted_owners, sorted_owners)
    before = np.empty_like(amounts)
    before[:, by_owner] = sums[:, :-1] - sums[:, starts]
    return before


def _each(owners: Slots, values: Mapping[int, int]) -> Floats:
    """The value of each pod's owner; 0 where it has none."""
    table = np.zeros(int(owners.max(initial=0)) + 2)
    for owner, value in values.items():
        table[owner] = value
    return table[owners]
