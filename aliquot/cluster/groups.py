"""The gangs of the embedded cluster: PodGroups that were given, and those that Volcano would make.

It does what Volcano's controllers do for its Jobs, and for owners of pods that ask for a group:
each has one of its own. A group that is given and belongs to such an owner, by its word or by its
name, is that owner's instead.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from typing import Any

from aliquot.cluster.belonging import group_key
from aliquot.cluster.changes import Change
from aliquot.cluster.endings import Endings
from aliquot.cluster.manners import manners
from aliquot.cluster.record import Phase, PodRecord
from aliquot.cluster.store import Store
from aliquot.cluster.workloads import owner_of
from aliquot.dialects import gangs
from aliquot.dialects.made_groups import group_name, pod_group
from aliquot.dialects.manifest import Key, Manifest, key
from aliquot.dialects.templates import MAKERS
from aliquot.engine.events import Event, GangGone, GangSet
from aliquot.engine.objects import Gang

_BEAR_ON_ALL = {"Namespace", "PriorityClass", "Queue"}


class Groups:
    """Gangs as they were last told, and which group is whose."""

    def __init__(self, store: Store, tell: Callable[[Event], None]) -> None:
        self.gangs: dict[str, Gang] = {}
        self._names: dict[Key, str] = {}
        """The names of groups, by the owners that have one."""
        self._given: dict[Key, str] = {}
        """The same of groups that were given, by whoever owns them."""
        self._store = store
        self._tell = tell
        self._made: dict[Key, Key] = {}
        """The groups that nobody wrote: whose they are."""
        self._dropped: set[Key] = set()
        self._endings = Endings()

    def of(self, owner: Key) -> str:
        """The name of the group of an owner of pods; empty if it has none."""
        return self._names.get(owner, "")

    def make(self, change: Change, idle: Container[Key] = ()) -> set[Key]:
        """Make the groups of the owners that come, unless they are `idle` and make no pods.

        Returns the keys of these groups, and of those that were dropped.
        """
        for each in change.apply:
            if each.kind == gangs.KIND:
                self._made.pop(each.key, None)
                owner = owner_of(each)
                if owner is not None:
                    self._given[owner] = each.name
        for owned in [each for each in self._names if each in idle]:
            self.drop(owned)
        groups = set()
        for each in change.apply:
            if isinstance(each.content, MAKERS):
                if group_name(each) is None or each.key in idle:
                    self.drop(each.key)
                else:
                    groups.add(self._make(each))
        dropped, self._dropped = self._dropped, set()
        return dropped | groups

    def _make(self, owner: Manifest) -> Key:
        name = self._given.get(owner.key) or group_name(owner) or ""
        given = key(gangs.KIND, owner.namespace, name)
        if given in self._store.objects and given not in self._made:
            self._names[owner.key] = name
            return given
        priorities = {task: each[0] for task, each in manners(owner, self._store).items()}
        made = pod_group(owner, priorities)
        self._names[owner.key] = made.name
        self._store.put(made)
        self._made[made.key] = owner.key
        return made.key

    def drop(self, owner: Key) -> None:
        """An owner is no longer there, or wants no group; the one made for it goes, too."""
        if self._names.pop(owner, None) is None:
            return
        for group, whose in list(self._made.items()):
            if whose == owner:
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
