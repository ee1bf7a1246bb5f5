"""The PodGroups of a simulation: those of the input, and those that Volcano would make.

Plays Volcano's controllers: each Volcano Job, and each workload that asks for one, has a PodGroup.
A group of the input that belongs to such a workload, by its owner reference or by its name, is used
in place of the one that would be made.
"""

from collections.abc import Container

from aliquot.dialects.core.manifest import Key, Manifest, key, owner_of
from aliquot.dialects.core.pod_templates import WORKLOADS
from aliquot.dialects.volcano import gangs
from aliquot.dialects.volcano.made_groups import group_name, pod_group
from aliquot.mirror.store import Change, Store


class Groups:
    """The PodGroup of each workload that has one."""

    def __init__(self, store: Store) -> None:
        self._names: dict[Key, str] = {}
        """The names of groups, by their workload."""
        self._given: dict[Key, str] = {}
        """The names of groups of the input, by the owner in their owner reference."""
        self._store = store
        self._made: dict[Key, Key] = {}
        """The workloads of the groups that were made here, by group."""
        self._dropped: set[Key] = set()

    def of(self, owner: Key) -> str:
        """The name of the group of a workload; empty if it has none."""
        return self._names.get(owner, "")

    def make(self, change: Change, idle: Container[Key] = ()) -> set[Key]:
        """Make the groups of the workloads of a change, unless they are `idle` and make no pods.

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
            if isinstance(each.content, WORKLOADS):
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
        made = pod_group(owner, self._store.priorities.task_priorities(owner))
        self._names[owner.key] = made.name
        self._store.put(made)
        self._made[made.key] = owner.key
        return made.key

    def drop(self, owner: Key) -> None:
        """A workload is deleted or asks for no group any more: delete the group made for it."""
        if self._names.pop(owner, None) is None:
            return
        for group, whose in list(self._made.items()):
            if whose == owner:
                del self._made[group]
                self._store.objects.pop(group, None)
                self._dropped.add(group)
