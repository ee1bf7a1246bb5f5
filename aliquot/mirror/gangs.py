"""The gangs of a cluster: its PodGroups, sent to the engine when they or their pods change.

A pod that has succeeded still counts towards its gang's minimum, so `Endings` counts how the pods
of each gang have ended.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.core.pods import FINISHED
from aliquot.dialects.volcano import gangs
from aliquot.engine import Event, Gang, GangGone, GangSet
from aliquot.mirror.group_membership import group_key
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Store

_KINDS_OF_ALL_GANGS = {"Namespace", "PriorityClass", "Queue"}


Ending = tuple[Key, str, Phase]
"""The PodGroup of a pod, its task, and the phase in which it ended."""


class Endings:
    """How the pods of each gang have ended, by the pod's path."""

    def __init__(self) -> None:
        self._last: dict[str, Ending] = {}
        self._count: dict[Key, Counter[tuple[str, Phase]]] = {}

    def note(self, path: str, group: Key | None, task: str, phase: Phase) -> set[Key]:
        """A pod of a group is now in this phase; returns the groups whose counts have changed.

        A pod that exists anew under the same path, or was deleted, no longer counts as ended.
        """
        before = self._last.pop(path, None)
        after = (group, task, phase) if group is not None and phase in FINISHED else None
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
        """How many pods of each task of a group have succeeded."""
        found = self._count.get(group, {}).items()
        return tuple(sorted((task, n) for (task, phase), n in found if n and phase == "Succeeded"))

    def failed(self, group: Key) -> int:
        """How many pods of a group have failed."""
        found = self._count.get(group, {}).items()
        return sum(number for (_, phase), number in found if phase == "Failed")


class Gangs:
    """The gangs that were last sent to the engine, by name."""

    def __init__(self, store: Store, send: Callable[[Event], None]) -> None:
        self.sent: dict[str, Gang] = {}
        self._store = store
        self._send = send
        self._endings = Endings()

    def note_phase(self, record: PodRecord, phase: Phase) -> None:
        """A pod is in this phase now; its gang is sent again if its endings have changed."""
        pod = record.pod
        group = group_key(record.group_ref, pod.namespace)
        for each in sorted(self._endings.note(pod.path, group, pod.task, phase)):
            old = self.sent.get(_name(each))
            if old is not None:
                self._set(replace(old, **self._ended(each)))

    def refresh(
        self, touched: Iterable[Key], queues: bool, age: Callable[[Manifest], int]
    ) -> set[Key]:
        """Send the gangs that differ after a change of the `touched` objects.

        Without `queues`, gangs are in none; `age` gives the age of a group. Returns the keys of the
        groups that were checked.
        """
        touched = set(touched)
        if {kind for kind, _, _ in touched} & _KINDS_OF_ALL_GANGS:
            touched |= {each for each in self._store.objects if each[0] == gangs.KIND}
            touched |= {_key(name) for name in self.sent}
        groups = {each for each in touched if each[0] == gangs.KIND}
        for each in sorted(groups):
            self._refresh(each, queues, age)
        return groups

    def _refresh(self, group: Key, queues: bool, age: Callable[[Manifest], int]) -> None:
        name = _name(group)
        manifest, old = self._store.objects.get(group), self.sent.get(name)
        if manifest is None:
            if self.sent.pop(name, None) is not None:
                self._send(GangGone(name))
            return
        created = old.created if old is not None else age(manifest)
        self._set(replace(self._store.gang(manifest, created, queues), **self._ended(group)))

    def _ended(self, group: Key) -> dict[str, Any]:
        return {"done": self._endings.done(group), "failed": self._endings.failed(group)}

    def _set(self, gang: Gang) -> None:
        if gang != self.sent.get(gang.name):
            self.sent[gang.name] = gang
            self._send(GangSet(gang))


def _name(group: Key) -> str:
    return f"{group[1]}/{group[2]}"


def _key(name: str) -> Key:
    namespace, _, bare = name.partition("/")
    return key(gangs.KIND, namespace, bare)
