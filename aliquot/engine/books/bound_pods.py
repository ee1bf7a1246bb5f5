"""The bound pods, in columns: what the victim search looks through.

One look at fifty thousand pods is a handful of numpy calls: who may go, how much that would free on
each node. Beside the columns stands each quota's list of pods in order of importance, kept up to
date once somebody has asked for it; there the core of a gang stands in one piece.
"""

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.gangs import Gangs
from aliquot.engine.books.ledger import Entry
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.gang import units
from aliquot.engine.model.importance import Natural, Order, OrderKey
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import LIMIT

_NODE, _QUOTA, _PRIORITY, _CREATED, _STARTED, _PREEMPTIBLE = range(6)
_NOBODY = -1
_WITHOUT_END = Fraction(LIMIT)
"""What any amount is as a part of nothing."""

Column = NDArray[np.int64]


class BoundPods:
    """Bound pods by slot: node, quota, priority, start; room taken and charge."""

    def __init__(self, resources: Resources, tree: QuotaTree, order: Order, gangs: Gangs) -> None:
        facts = Resources()
        for name in ("node", "quota", "priority", "created", "started", "preemptible"):
            facts.row(name)
        self.slots = Slots()
        self.room = Columns(resources, self.slots)
        self.charge = Columns(resources, self.slots)
        self._facts = Columns(facts, self.slots, default=_NOBODY)
        self._tree = tree
        self._order = order
        self._gangs = gangs
        self._pods: dict[str, Pod] = {}
        self._keys: dict[str, OrderKey] = {}
        self._in_quota: dict[int, dict[str, None]] = {}
        self._ranked: dict[int, list[str]] = {}
        self._starts: dict[int, Column] = {}
        """Where the unit of each pod begins in that list, in quotas that have units of several."""

    def __len__(self) -> int:
        return len(self._keys)

    def set(self, pod: Pod, entry: Entry) -> None:
        """A pod is bound, like this."""
        self.remove(pod.uid)
        slot = self.slots.take(pod.uid)
        quota = entry.path[0]
        self.room.fill(slot, entry.booking.room)
        self.charge.fill(slot, entry.booking.charge)
        known = (pod.priority, pod.created, pod.started, pod.preemptible)
        self._facts.data[:, slot] = (entry.node, quota, *known)
        self._pods[pod.uid] = pod
        self._keys[pod.uid] = self.key_for(pod, entry)
        self._in_quota.setdefault(quota, {})[pod.uid] = None
        ranked = self._ranked.get(quota)
        if ranked is not None and (quota in self._starts or self._gangs.of(pod) is not None):
            self._rank_anew(quota)
        elif ranked is not None:
            at = bisect_left(ranked, self._keys[pod.uid], key=self._keys.__getitem__)
            self._ranked[quota] = [*ranked[:at], pod.uid, *ranked[at:]]

    def remove(self, uid: str) -> None:
        """A pod is no longer there, or on its way out."""
        if uid in self.slots:
            slot = self.slots[uid]
            quota = int(self.quota[slot])
            if quota in self._starts:
                self._rank_anew(quota)
            elif quota in self._ranked:
                self._ranked[quota] = [each for each in self._ranked[quota] if each != uid]
            del self._in_quota[quota][uid], self._keys[uid], self._pods[uid]
            self._facts.data[:, slot] = _NOBODY
            self.slots.drop(uid)

    def ranked(self, quota: int) -> list[str]:
        """The pods of a quota (by slot), the most important first: a new list when one changes."""
        found = self._ranked.get(quota)
        if found is None:
            pods = self._in_quota.get(quota, {})
            found = sorted(pods, key=self._keys.__getitem__)
            if any(self._gangs.of(self._pods[uid]) is not None for uid in found):
                found = self._in_pieces(quota, found)
            self._ranked[quota] = found
        return found

    def unit_start(self, quota: int, at: int) -> int:
        """Where the unit begins that the pod at this place of `ranked` is of."""
        starts = self._starts.get(quota)
        return at if starts is None or at >= len(starts) else int(starts[at])

    def regroup(self) -> None:
        """A gang is not what it was."""
        for quota in list(self._ranked):
            self._rank_anew(quota)

    def _rank_anew(self, quota: int) -> None:
        self._ranked.pop(quota, None)
        self._starts.pop(quota, None)

    def _in_pieces(self, quota: int, ranked: list[str]) -> list[str]:
        found: list[str] = []
        starts: list[int] = []
        for unit in units([self._pods[uid] for uid in ranked], self._gangs.of):
            starts += [len(found)] * len(unit.pods)
            found += [pod.uid for pod in unit.pods]
        self._starts[quota] = np.array(starts, dtype=np.int64)
        return found

    def least_important(self, mask: NDArray[np.bool_], most: int) -> list[int]:
        """So many of these pods, by slot: of the lowest priorities, the youngest."""
        found: list[int] = []
        slots = np.flatnonzero(mask)
        for level in np.unique(self.priority[slots]):
            here = slots[self.priority[slots] == level]
            wanted = most - len(found)
            found += self._youngest(here, wanted)
            if len(found) >= most:
                break
        return found

    def _youngest(self, slots: NDArray[np.int64], most: int) -> list[int]:
        """The youngest of these; where ages are equal, the last in the order of importance."""
        if len(slots) > most:
            created = self.created[slots]
            cut = np.partition(created, len(slots) - most)[len(slots) - most]
            tied = [int(slot) for slot in slots[created == cut]]
            tied.sort(key=lambda slot: self._keys[str(self.slots.names[slot])], reverse=True)
            sure = [int(slot) for slot in slots[created > cut]]
            return sure + tied[: most - len(sure)]
        return [int(slot) for slot in slots]

    def key(self, uid: str) -> OrderKey:
        """The pod's place in the order of importance."""
        return self._keys[uid]

    def name(self, uid: str) -> Natural:
        """The pod's name, the way people order names: the last part of its place."""
        name: Natural = self._keys[uid][-1]
        return name

    def key_for(self, pod: Pod, entry: Entry) -> OrderKey:
        """The place that a pod has, or would have, in the order of its quota."""
        request = Fraction(0)
        if self._order.by_request:
            low, slot = self._tree.min, entry.path[0]
            for row, amount in entry.booking.charge:
                least = low.get(row, slot)
                if least or self._tree.guaranteed(row) is not None:
                    request = max(request, Fraction(amount, least) if least else _WITHOUT_END)
        return self._order.key(pod, request)

    def reorder(self, quota: int, entries: Mapping[str, Entry]) -> None:
        """A quota's min has changed, and with it perhaps the places of its pods."""
        if self._order.by_request:
            for uid in self._in_quota.get(quota, ()):
                self._keys[uid] = self.key_for(self._pods[uid], entries[uid])
            self._rank_anew(quota)

    def quotas(self) -> list[int]:
        """The quotas (by slot) that have pods, in order."""
        return sorted(quota for quota, pods in self._in_quota.items() if pods)

    @property
    def node(self) -> Column:
        """The node's slot; below zero where nobody is."""
        column: Column = self._facts.data[_NODE]
        return column

    @property
    def quota(self) -> Column:
        """The quota's slot (OUTSIDE for none)."""
        column: Column = self._facts.data[_QUOTA]
        return column

    @property
    def priority(self) -> Column:
        """The priority."""
        column: Column = self._facts.data[_PRIORITY]
        return column

    @property
    def preemptible(self) -> NDArray[np.bool_]:
        """Does it let itself be asked to go?"""
        mask: NDArray[np.bool_] = self._facts.data[_PREEMPTIBLE] > 0
        return mask

    @property
    def created(self) -> Column:
        """The age: larger is younger."""
        column: Column = self._facts.data[_CREATED]
        return column

    @property
    def started(self) -> Column:
        """When it began to run."""
        column: Column = self._facts.data[_STARTED]
        return column
