"""Bound pods in the order of importance, of one quota or of all, as an array of slots.

Sorting all pods of a quota for each decision would take longer than the decision. So the order is
kept: a pod that comes or goes costs a bisection and one copy of the array.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.columns import Slots


class Keys(Protocol):
    """The key of each pod; smaller is more important."""

    def __getitem__(self, uid: str, /) -> Any: ...


class Ranking:
    """The slots of pods, the most important first."""

    def __init__(self, uids: Iterable[str], keys: Keys, slots: Slots) -> None:
        self._keys = keys
        self._names = slots
        self._uids = sorted(uids, key=keys.__getitem__)
        self.slots: NDArray[np.int64] = np.array([slots[uid] for uid in self._uids], dtype=np.int64)

    def add(self, uid: str) -> None:
        """Add a pod that has a key and a slot."""
        at = self._place(uid)
        self._uids.insert(at, uid)
        self.slots = np.insert(self.slots, at, self._names[uid])

    def remove(self, uid: str) -> None:
        """Remove a pod, while it still has its key."""
        at = self._place(uid)
        while self._uids[at] != uid:  # an older pod of the same name may have the same key
            at += 1
        del self._uids[at]
        self.slots = np.delete(self.slots, at)

    def _place(self, uid: str) -> int:
        return bisect_left(self._uids, self._keys[uid], key=self._keys.__getitem__)


class Owners:
    """The slots of namespaces or gangs, each for as long as a pod of it is bound."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._pods: dict[str, int] = {}

    def name(self, slot: int) -> str:
        """The name in a slot that is taken."""
        return str(self._slots.names[slot])

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def __getitem__(self, name: str) -> int:
        return self._slots[name]

    def join(self, name: str) -> int:
        """The slot of a name, for one pod more."""
        self._pods[name] = self._pods.get(name, 0) + 1
        return self._slots.take(name)

    def leave(self, name: str) -> None:
        """One pod less: the last one frees the slot."""
        self._pods[name] -= 1
        if not self._pods[name]:
            del self._pods[name]
            self._slots.drop(name)
