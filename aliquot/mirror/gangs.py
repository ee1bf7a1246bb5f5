"""The gangs of a cluster: what its PodGroups say, and how their pods have ended so far."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.volcano import gangs
from aliquot.engine import Event, Gang, GangGone, GangSet
from aliquot.mirror.group_membership import group_key
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Store

_BEAR_ON_ALL = {"Namespace", "PriorityClass", "Queue"}


class Gangs:
    """Gangs as they were last told, by name."""

    def __init__(self, store: Store, tell: Callable[[Event], None]) -> None:
        self.told: dict[str, Gang] = {}
        self._store = store
        self._tell = tell
        self._endings = Endings()

    def note(self, record: PodRecord, phase: Phase) -> None:
        """A pod is in this phase now; its gang is told anew if that is news to it."""
        pod = record.pod
        group = group_key(record.group_ref, pod.namespace)
        for each in sorted(self._endings.note(pod.path, group, pod.task, phase)):
            old = self.told.get(_name(each))
            if old is not None:
                self._set(replace(old, **self._ended(each)))

    def restate(
        self, touched: Iterable[Key], queues: bool, age: Callable[[Manifest], int]
    ) -> set[Key]:
        """Tell what has become of the gangs, where these objects are not what they were.

        Without `queues` there are none to be in; `age` says how old a group is. Returns the keys of
        the groups that were looked at.
        """
        touched = set(touched)
        if {kind for kind, _, _ in touched} & _BEAR_ON_ALL:
            touched |= {each for each in self._store.objects if each[0] == gangs.KIND}
            touched |= {_key(name) for name in self.told}
        groups = {each for each in touched if each[0] == gangs.KIND}
        for each in sorted(groups):
            self._restate(each, queues, age)
        return groups

    def _restate(self, group: Key, queues: bool, age: Callable[[Manifest], int]) -> None:
        name = _name(group)
        manifest, old = self._store.objects.get(group), self.told.get(name)
        if manifest is None:
            if self.told.pop(name, None) is not None:
                self._tell(GangGone(name))
            return
        created = old.created if old is not None else age(manifest)
        self._set(replace(self._store.gang(manifest, created, queues), **self._ended(group)))

    def _ended(self, group: Key) -> dict[str, Any]:
        return {"done": self._endings.done(group), "failed": self._endings.failed(group)}

    def _set(self, gang: Gang) -> None:
        if gang != self.told.get(gang.name):
            self.told[gang.name] = gang
            self._tell(GangSet(gang))


def _name(group: Key) -> str:
    return f"{group[1]}/{group[2]}"


def _key(name: str) -> Key:
    namespace, _, bare = name.partition("/")
    return key(gangs.KIND, namespace, bare)


_COUNTED = ("Succeeded", "Failed")

Ending = tuple[Key, str, Phase]
"""A group, a task of it, and how a pod of that has ended."""


class Endings:
    """The last ending of each pod, by its path, and their numbers."""

    def __init__(self) -> None:
        self._last: dict[str, Ending] = {}
        self._count: dict[Key, Counter[tuple[str, Phase]]] = {}

    def note(self, path: str, group: Key | None, task: str, phase: Phase) -> set[Key]:
        """A pod of a group is now in this phase; returns the groups whose numbers are others now.

        A pod that is there anew, or was deleted, has not ended any more.
        """
        before = self._last.pop(path, None)
        after = (group, task, phase) if group is not None and phase in _COUNTED else None
        if after is not None:
            self._last[path] = after
        if before == after:
            return set()
        if after is not None:
            self._count.setdefault(after[0], Counter())[after[1:]] += 1
        if before is not None:
            self._uncount(*before)
        return {ending[0] for ending in (before, after) if ending is not None}

    def _uncount(self, group: Key, task: str, phase: Phase) -> None:
        count = self._count[group]
        count[task, phase] -= 1
        if not any(count.values()):
            del self._count[group]

    def done(self, group: Key) -> tuple[tuple[str, int], ...]:
        """How many pods of each task have ended well."""
        found = self._count.get(group, {}).items()
        return tuple(sorted((task, n) for (task, phase), n in found if n and phase == "Succeeded"))

    def failed(self, group: Key) -> int:
        """How many pods have not."""
        found = self._count.get(group, {}).items()
        return sum(number for (_, phase), number in found if phase == "Failed")
