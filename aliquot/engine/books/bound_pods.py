"""The bound pods, in columns over all pods: what the search for victims reads.

With columns, asking which of fifty thousand pods may be evicted, and what that would free on each
node, is a handful of numpy calls. Beside them each quota has its list of pods in order of
importance, made when first read and kept up to date from then on; in it the core of a gang is
contiguous. Terminating pods are not here but in `leaving`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.card_holders import CardHolders
from aliquot.engine.books.gangs import Gangs
from aliquot.engine.books.kin import Kin
from aliquot.engine.books.ledger import Entry
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.books.ranking import Owners, Ranking
from aliquot.engine.columns import Columns, Resources, Slots, Vector, distinct
from aliquot.engine.model.gang import units
from aliquot.engine.model.importance import Natural, Order, OrderKey
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quantity import LIMIT

_FACTS = (
    *("node", "quota", "priority", "created", "started", "preemptible", "ends"),
    *("namespace", "gang", "needed", "kin", "shape"),
)
_NODE, _QUOTA, _PRIORITY, _CREATED, _STARTED, _PREEMPTIBLE, _ENDS = range(7)
_NAMESPACE, _GANG, _NEEDED, _KIN, _SHAPE = range(7, 12)
_EMPTY = -1
"""In columns of slots without a pod."""
_NOTHING = Fraction(0)
_INFINITE = Fraction(LIMIT)
"""A request as a fraction of a min of 0: larger than any other fraction."""

_MOST_SORTED = 64
"""Up to so many pods of one age are sorted for a search; of more, their order is kept."""

Column = NDArray[np.int64]
UNKNOWN = LIMIT
"""The end of a pod that can end by itself, at a time that nothing states."""
NEVER = LIMIT + 1
"""The end of a pod that its owner keeps running."""


class BoundPods:
    """Bound pods by slot: whose they are, where, since when; what each takes and is charged."""

    def __init__(
        self,
        resources: Resources,
        tree: QuotaTree,
        order: Order,
        gangs: Gangs,
        is_needed: Callable[[Pod], bool],
        card_numbers: Callable[[tuple[str, ...]], list[int]],
    ) -> None:
        facts = Resources()
        for name in _FACTS:
            facts.row(name)
        self.slots = Slots()
        self.room = Columns(resources, self.slots)
        self.charge = Columns(resources, self.slots)
        self._facts = Columns(facts, self.slots, default=_EMPTY)
        self._tree = tree
        self._order = order
        self._gangs = gangs
        self._is_needed = is_needed
        self._card_numbers = card_numbers
        self.cards = CardHolders()
        self._pods: dict[str, Pod] = {}
        self._keys: dict[str, OrderKey] = {}
        self._guaranteed: tuple[int, ...] = ()
        """The resources that some quota's min names, as the keys were computed."""
        self._in_quota: dict[int, dict[str, None]] = {}
        self._on_node: dict[int, dict[int, None]] = {}
        """The slots of the pods on each node."""
        self._ranked: dict[int, Column] = {}
        self._starts: dict[int, Column] = {}
        """Of quotas with gangs: for each place in `_ranked`, where its unit begins."""
        self._rankings: dict[int, Ranking] = {}
        """The order of importance without regard to gangs, of quotas for which it was asked."""
        self._ranking_of_all: Ranking | None = None
        """The same of the pods of all quotas, once it was needed."""
        self.namespace_slots, self.gang_slots = Owners(), Owners()
        self.kins = Kin()
        self.shapes: list[Shape] = []
        """Every shape of a bound pod so far; in `shape` each is a number."""
        self._shape_numbers: dict[Shape, int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def set(self, pod: Pod, entry: Entry) -> None:
        """Add a bound pod with its entry in the ledger, or replace it."""
        self.remove(pod.uid)
        slot = self.slots.take(pod.uid)
        quota = entry.path[0]
        self.room.fill(slot, entry.booking.room)
        self.charge.fill(slot, entry.booking.charge)
        self._facts.data[:, slot] = self._join(pod, entry, slot)
        if (gpu := entry.booking.gpu) is not None and gpu.devices:
            self.cards.add(slot, self._card_numbers(gpu.devices), gpu.amounts)
        if quota in self._rankings:
            self._rankings[quota].add(pod.uid)
        if self._ranking_of_all is not None:
            self._ranking_of_all.add(pod.uid)
        ranked = self._ranked.get(quota)
        if ranked is not None and (quota in self._starts or self._gangs.of(pod) is not None):
            self._drop_ranking(quota)
        elif ranked is not None:
            at = bisect_left(ranked, self._place(slot), key=self._place)
            self._ranked[quota] = np.insert(ranked, at, slot)

    def load(self, pods: Iterable[Pod], entries: Mapping[str, Entry]) -> None:
        """Add bound pods that are not here and hold no cards, many at once: see `pod_load`.

        The lists of their quotas are made anew when they are next read.
        """
        slots, facts, quotas = list[int](), list[tuple[int, ...]](), dict[int, None]()
        rooms, charges = dict[Vector, list[int]](), dict[Vector, list[int]]()
        for pod in pods:
            entry, slot = entries[pod.uid], self.slots.take(pod.uid)
            slots.append(slot)
            facts.append(self._join(pod, entry, slot))
            rooms.setdefault(entry.booking.room, []).append(slot)
            charges.setdefault(entry.booking.charge, []).append(slot)
            quotas[entry.path[0]] = None
        if facts:
            self._facts.data[:, slots] = np.array(facts, dtype=np.int64).T
            self._ranking_of_all = None
        self.room.fill_all(rooms)
        self.charge.fill_all(charges)
        for quota in quotas:
            self._drop_ranking(quota)
            self._rankings.pop(quota, None)

    def _join(self, pod: Pod, entry: Entry, slot: int) -> tuple[int, ...]:
        """Enter a pod in all lists that need no ranking; its facts, for its slot."""
        self._pods[pod.uid] = pod
        self._keys[pod.uid] = self.key_for(pod, entry)
        self._in_quota.setdefault(entry.path[0], {})[pod.uid] = None
        self._on_node.setdefault(entry.node, {})[slot] = None
        known = (pod.priority, pod.created, pod.started, pod.preemptible, end_of(pod))
        namespace = self.namespace_slots.join(pod.namespace)
        gang = _EMPTY if pod.gang is None else self.gang_slots.join(pod.gang)
        needed, kin = self._is_needed(pod), self.kins.join(pod)
        shape = self._shape_numbers.setdefault(pod.shape, len(self.shapes))
        if shape == len(self.shapes):
            self.shapes.append(pod.shape)
        return (entry.node, entry.path[0], *known, namespace, gang, needed, kin, shape)

    def remove(self, uid: str) -> None:
        """Remove a pod that is gone or terminating; does nothing if it is not here."""
        if uid in self.slots:
            slot = self.slots[uid]
            quota = int(self.quota[slot])
            if quota in self._starts:
                self._drop_ranking(quota)
            elif quota in self._ranked:
                ranked = self._ranked[quota]
                at = bisect_left(ranked, self._place(slot), key=self._place)
                assert ranked[at] == slot, "no two pods have one place"
                self._ranked[quota] = np.delete(ranked, at)
            if quota in self._rankings:
                self._rankings[quota].remove(uid)
            if self._ranking_of_all is not None:
                self._ranking_of_all.remove(uid)
            pod = self._pods[uid]
            self.namespace_slots.leave(pod.namespace)
            self.kins.leave(pod)
            if pod.gang is not None:
                self.gang_slots.leave(pod.gang)
            del self._in_quota[quota][uid], self._keys[uid], self._pods[uid]
            del self._on_node[int(self.node[slot])][slot]
            self._facts.data[:, slot] = _EMPTY
            self.cards.remove(slot)
            self.slots.drop(uid)

    def eligibility(self, uid: str) -> tuple[int, int, bool] | None:
        """What of a pod makes it a victim or not: quota, priority, whether it is preemptible."""
        pod = self._pods.get(uid)
        if pod is None:
            return None
        return int(self.quota[self.slots[uid]]), pod.priority, pod.preemptible

    def on_node(self, node: int) -> Column:
        """The slots of the pods on a node, in order."""
        return np.array(sorted(self._on_node.get(node, ())), dtype=np.int64)

    def has_lower(self, quota: int, priority: int) -> bool:
        """Has a quota a pod of lower priority than this?"""
        return bool(((self.quota == quota) & (self.priority < priority)).any())

    def ranked(self, quota: int) -> list[str]:
        """The uids of a quota's pods, the most important first."""
        names = self.slots.names
        return [str(names[slot]) for slot in self.ranked_slots(quota).tolist()]

    def ranked_slots(self, quota: int) -> Column:
        """The same pods by slot, as an array that is never changed: there is a new one then.

        Pods that are not preemptible come before all others: they live within min.
        """
        found = self._ranked.get(quota)
        if found is None:
            found, pods, names = self._in_order(quota), self._pods, self.slots.names
            of_gangs = found[self.gang.take(found) != _EMPTY].tolist()
            if any(self._gangs.of(pods[str(names[slot])]) is not None for slot in of_gangs):
                found = self._rank_by_unit(quota, found)
            self._ranked[quota] = found
        return found

    def _in_order(self, quota: int) -> Column:
        """The pods of a quota, by slot, in the order of `_place`: without a call for each pod."""
        if self._order.by_age:
            slots = np.flatnonzero(self.quota == quota)
            preemptible = self._facts.data[_PREEMPTIBLE].take(slots) > 0
            facts = self.created.take(slots), -self.priority.take(slots), preemptible
            order = np.lexsort(facts)
            slots = slots[order]
            self._order_equals(slots, [fact[order] for fact in facts])
            return slots
        names = sorted(self._in_quota.get(quota, {}), key=self._keys.__getitem__)
        slots = np.array(self.slots.of(names), dtype=np.int64)
        preemptible = self._facts.data[_PREEMPTIBLE].take(slots) > 0
        return slots if preemptible.all() else slots[np.argsort(preemptible, kind="stable")]

    def _order_equals(self, slots: Column, facts: list[NDArray[Any]]) -> None:
        """Order the pods that are equal in all these facts by their keys, in place."""
        equal = np.ones(max(len(slots) - 1, 0), dtype=bool)
        for fact in facts:
            equal &= fact[1:] == fact[:-1]
        names, begin = self.slots.names, 0
        ends = np.flatnonzero(np.append(~equal, True)) + 1
        for end in ends.tolist() if equal.any() else ():
            if end > begin + 1:
                alike = slots[begin:end].tolist()
                alike.sort(key=lambda slot: self._keys[str(names[slot])])
                slots[begin:end] = alike
            begin = end

    def _place(self, slot: int) -> tuple[bool, OrderKey]:
        uid = str(self.slots.names[slot])
        return self._pods[uid].preemptible, self._keys[uid]

    def by_importance(self, quota: int) -> Column:
        """The slots of a quota's pods, the most important first, whatever gangs they are in."""
        found = self._rankings.get(quota)
        if found is None:
            found = Ranking(self._in_quota.get(quota, {}), self._keys, self.slots)
            self._rankings[quota] = found
        return found.slots

    def unit_start(self, quota: int, at: int) -> int:
        """Where in `ranked_slots` the unit begins that contains this place."""
        starts = self._starts.get(quota)
        return at if starts is None or at >= len(starts) else int(starts[at])

    def regroup(self, gang: str) -> None:
        """A gang has changed: make the lists anew that its pods are in when they are next read."""
        for uid in self._gangs.members.get(gang, ()):
            if uid in self.slots:
                self._drop_ranking(int(self.quota[self.slots[uid]]))

    def _drop_ranking(self, quota: int) -> None:
        self._ranked.pop(quota, None)
        self._starts.pop(quota, None)

    def _rank_by_unit(self, quota: int, ranked: Column) -> Column:
        found: list[str] = []
        starts: list[int] = []
        pods = [self._pods[str(self.slots.names[slot])] for slot in ranked.tolist()]
        for unit in units(pods, self._gangs.of):
            starts += [len(found)] * len(unit.pods)
            found += [pod.uid for pod in unit.pods]
        self._starts[quota] = np.array(starts, dtype=np.int64)
        return np.array(self.slots.of(found), dtype=np.int64)

    def least_important(self, mask: NDArray[np.bool_], most: int) -> list[int]:
        """At most `most` of these pods, by slot: of the lowest priorities, the youngest."""
        found: list[int] = []
        slots = np.flatnonzero(mask)
        for level in distinct(self.priority[slots]).tolist():
            here = slots[self.priority[slots] == level]
            wanted = most - len(found)
            found += self._youngest(here, wanted)
            if len(found) >= most:
                break
        return found

    def _youngest(self, slots: NDArray[np.int64], most: int) -> list[int]:
        """The pods that started last; of those that started together, the ones created last.

        Where these ages are equal too, the last in the order of importance.
        """
        found: list[int] = []
        for age in (self.started, self.created):
            wanted = most - len(found)
            if len(slots) > wanted:
                ages = age[slots]
                cut = np.partition(ages, len(slots) - wanted)[len(slots) - wanted]
                found += slots[ages > cut].tolist()
                slots = slots[ages == cut]
        wanted = most - len(found)
        return found + (self._last(slots, wanted) if len(slots) > wanted else slots.tolist())

    def _last(self, slots: NDArray[np.int64], most: int) -> list[int]:
        """The last of these pods in the order of importance, the last one first."""
        if len(slots) <= _MOST_SORTED:
            names, keys = self.slots.names, self._keys
            return sorted(slots.tolist(), key=lambda at: keys[str(names[at])], reverse=True)[:most]
        if self._ranking_of_all is None:
            distinct = _DistinctKeys(self._keys, self.slots)
            self._ranking_of_all = Ranking(self._keys, distinct, self.slots)
        these = np.zeros(self.node.shape, dtype=bool)
        these[slots] = True
        last_first = self._ranking_of_all.slots[::-1]
        found: list[int] = last_first[these[last_first]][:most].tolist()
        return found

    def key(self, uid: str) -> OrderKey:
        """The pod's place in the order of its quota."""
        return self._keys[uid]

    def name(self, uid: str) -> Natural:
        """The pod's name as `importance.natural` orders it: the last part of its key."""
        name: Natural = self._keys[uid][-1]
        return name

    def key_for(self, pod: Pod, entry: Entry) -> OrderKey:
        """The place that a pod with this entry has, or would have, in the order of its quota."""
        request = _NOTHING
        if self._order.by_request:
            low, slot = self._tree.min, entry.path[0]
            for row, amount in entry.booking.charge:
                least = low.get(row, slot)
                if least or self._tree.guaranteed(row) is not None:
                    request = max(request, Fraction(amount, least) if least else _INFINITE)
        return self._order.key(pod, request)

    def reorder(self, quota: int, entries: Mapping[str, Entry]) -> None:
        """A quota has changed: where the order depends on min, compute the keys anew.

        Those of all quotas, if the resources that any quota's min names are others than before.
        """
        if not self._order.by_request:
            return
        self._ranking_of_all = None
        before, self._guaranteed = self._guaranteed, self._tree.guaranteed_rows()
        for each in [quota] if before == self._guaranteed else list(self._in_quota):
            for uid in self._in_quota.get(each, ()):
                self._keys[uid] = self.key_for(self._pods[uid], entries[uid])
            self._drop_ranking(each)
            self._rankings.pop(each, None)

    def quotas(self) -> list[int]:
        """The quotas (by slot) that have pods, in order."""
        return sorted(quota for quota, pods in self._in_quota.items() if pods)

    @property
    def node(self) -> Column:
        """The node's slot; below zero in slots without a pod."""
        column: Column = self._facts.data[_NODE]
        return column

    @property
    def quota(self) -> Column:
        """The quota's slot (OUTSIDE for none)."""
        column: Column = self._facts.data[_QUOTA]
        return column

    @property
    def shape(self) -> Column:
        """The number of the shape."""
        column: Column = self._facts.data[_SHAPE]
        return column

    @property
    def priority(self) -> Column:
        """The priority."""
        column: Column = self._facts.data[_PRIORITY]
        return column

    @property
    def preemptible(self) -> NDArray[np.bool_]:
        """Whether the pod says that it may be evicted for a claim."""
        mask: NDArray[np.bool_] = self._facts.data[_PREEMPTIBLE] > 0
        return mask

    @property
    def needed(self) -> NDArray[np.bool_]:
        """Whether the system needs the pod: then it is never evicted for a claim."""
        mask: NDArray[np.bool_] = self._facts.data[_NEEDED] > 0
        return mask

    @property
    def created(self) -> Column:
        """The age: larger is younger."""
        column: Column = self._facts.data[_CREATED]
        return column

    @property
    def ends(self) -> Column:
        """When the pod ends: a known time, UNKNOWN or NEVER."""
        column: Column = self._facts.data[_ENDS]
        return column

    @property
    def started(self) -> Column:
        """When the pod began to run."""
        column: Column = self._facts.data[_STARTED]
        return column

    @property
    def namespace(self) -> Column:
        """The slot of the pod's namespace in `namespace_slots`."""
        column: Column = self._facts.data[_NAMESPACE]
        return column

    @property
    def gang(self) -> Column:
        """The slot of the pod's gang in `gang_slots`; below zero for none."""
        column: Column = self._facts.data[_GANG]
        return column

    @property
    def kin(self) -> Column:
        """The number of the pod's namespace, labels and rules in `kins`."""
        column: Column = self._facts.data[_KIN]
        return column


class _DistinctKeys:
    """The keys of pods, those with equal keys told apart by slot: in reverse, the lower first."""

    def __init__(self, keys: Mapping[str, OrderKey], slots: Slots) -> None:
        self._keys = keys
        self._slots = slots

    def __getitem__(self, uid: str) -> tuple[OrderKey, int]:
        return self._keys[uid], -self._slots[uid]


def end_of(pod: Pod) -> int:
    """When a bound pod ends, as far as that is known."""
    if not pod.may_end:
        return NEVER
    return UNKNOWN if pod.expected_end is None else min(pod.expected_end, UNKNOWN)
