"""The gangs of the embedded cluster: PodGroups that were given, and those that Volcano would make.

It does what Volcano's controller does for its Jobs: each has a group of its own, under its name. A
group that is given and belongs to a Job, by its owner or by its name, is that Job's instead.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aliquot.cluster.belonging import group_key
from aliquot.cluster.changes import Change
from aliquot.cluster.endings import Endings
from aliquot.cluster.record import Phase, PodRecord
from aliquot.cluster.store import Store
from aliquot.cluster.workloads import owner_of
from aliquot.dialects import gangs, jobs
from aliquot.dialects.manifest import Key, Manifest, key
from aliquot.dialects.wire import GangJobWire
from aliquot.engine.events import Event, GangGone, GangSet
from aliquot.engine.objects import Gang

_BEAR_ON_ALL = {"Namespace", "PriorityClass", "Queue"}


class Groups:
    """Gangs as they were last told, and which group is whose."""

    def __init__(self, store: Store, tell: Callable[[Event], None]) -> None:
        self.gangs: dict[str, Gang] = {}
        self._names: dict[Key, str] = {}
        """The names of groups, by their owners."""
        self._store = store
        self._tell = tell
        self._made: dict[Key, Key] = {}
        """The groups that nobody wrote: whose they are."""
        self._dropped: set[Key] = set()
        self._endings = Endings()

    def of_job(self, manifest: Manifest) -> str:
        """The name of the group of one of Volcano's Jobs; other owners of pods have none."""
        is_job = isinstance(manifest.content, GangJobWire)
        return self._names[manifest.key] if is_job else ""

    def make(self, change: Change) -> set[Key]:
        """Make the groups of the Jobs that come; returns their keys, and those of dropped ones."""
        for each in change.apply:
            if each.kind == gangs.KIND:
                self._made.pop(each.key, None)
                owner = owner_of(each)
                if owner is not None:
                    self._names[owner] = each.name
        arrived = [each for each in change.apply if isinstance(each.content, GangJobWire)]
        dropped, self._dropped = self._dropped, set()
        return dropped | {self._make(each) for each in arrived}

    def _make(self, job: Manifest) -> Key:
        name = self._names.setdefault(job.key, job.name)
        group = key(gangs.KIND, job.namespace, name)
        if group not in self._store.objects or group in self._made:
            self._names[job.key] = job.name
            made = jobs.pod_group(job)
            self._store.put(made)
            self._made[made.key] = job.key
            return made.key
        return group

    def drop(self, job: Key) -> None:
        """A Job is no longer there, nor the group that was made for it."""
        self._names.pop(job, None)
        for group, owner in list(self._made.items()):
            if owner == job:
                del self._made[group]
                self._store.objects.pop(group, None)
                self._dropped.add(group)

    def note(self, record: PodRecord, phase: Phase) -> None:
        """A pod is in this phase now; its gang is told anew if that is news to it."""
        pod = record.pod
        group = group_key(record.ties, pod.namespace)
        for each in sorted(self._endings.note(pod.path, group, pod.task, phase)):
            old = self.gangs.get(_name(each))
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
            touched |= {_key(name) for name in self.gangs}
        groups = {each for each in touched if each[0] == gangs.KIND}
        for each in sorted(groups):
            self._restate(each, queues, age)
        return groups

    def _restate(self, group: Key, queues: bool, age: Callable[[Manifest], int]) -> None:
        name = _name(group)
        manifest, old = self._store.objects.get(group), self.gangs.get(name)
        if manifest is None:
            if self.gangs.pop(name, None) is not None:
                self._tell(GangGone(name))
            return
        created = old.created if old is not None else age(manifest)
        self._set(replace(self._store.gang(manifest, created, queues), **self._ended(group)))

    def _ended(self, group: Key) -> dict[str, Any]:
        return {"done": self._endings.done(group), "failed": self._endings.failed(group)}

    def _set(self, gang: Gang) -> None:
        if gang != self.gangs.get(gang.name):
            self.gangs[gang.name] = gang
            self._tell(GangSet(gang))


def _name(group: Key) -> str:
    return f"{group[1]}/{group[2]}"


def _key(name: str) -> Key:
    namespace, _, bare = name.partition("/")
    return key(gangs.KIND, namespace, bare)
