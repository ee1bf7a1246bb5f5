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
from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.dialects.volcano import gangs
from aliquot.dialects.volcano.declared_gangs import Declaration
from aliquot.engine import Event, Gang, GangGone, GangSet
from aliquot.mirror.group_membership import group_key
from aliquot.mirror.job_groups import JobGroups
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Store
from aliquot.mirror.topology import TopologyDemands

_JOB_KINDS = {"Job", *BY_KIND}
_KINDS_OF_ALL_GANGS = {"Namespace", "PriorityClass", "Queue", "HyperNode"}


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

    def __init__(
        self, store: Store, send: Callable[[Event], None], demands: TopologyDemands
    ) -> None:
        self._demands = demands
        self.sent: dict[str, Gang] = {}
        self._store = store
        self._send = send
        self._endings = Endings()
        self.of_jobs = JobGroups()
        self._declared: dict[Key, dict[str, tuple[int, Declaration]]] = {}
        """What pods say of their gangs, with their ages, by uid."""

    def declare(self, record: PodRecord) -> None:
        """Send the gang that a pod declares itself, if there is no PodGroup of that name."""
        group = group_key(record.group_ref, record.pod.namespace)
        declared = record.group_ref.declared
        assert group is not None
        assert declared is not None
        known = self._declared.setdefault(group, {})
        if known.get(record.pod.uid) != (record.pod.created, declared):
            known[record.pod.uid] = record.pod.created, declared
            self._refresh_declared(group)

    def _refresh_declared(self, group: Key) -> None:
        """Send the gang that pods declare: as the oldest of them has it; or that it is gone."""
        if self.of_jobs.in_force(group, self._store.objects) is not None:
            return
        known, name = self._declared.get(group), _name(group)
        if not known:
            if self.sent.pop(name, None) is not None:
                self._send(GangGone(name))
            return
        _, (created, said) = min(known.items(), key=lambda each: (each[1][0], each[0]))
        old = self.sent.get(name)
        together = tuple(each for each in said.together if each != name)
        age = created if old is None else old.created
        found = Gang(name, said.min_member, together=together, keeps_room=said.keeps_room)
        self._set(replace(found, created=age, **self._ended(group)))

    def _withdraw(self, record: PodRecord, group: Key | None) -> None:
        """A pod is gone, and with it what it declares."""
        known = self._declared.get(group) if group is not None else None
        if group is not None and known is not None and record.pod.uid in known:
            del known[record.pod.uid]
            if not known:
                del self._declared[group]
            self._refresh_declared(group)

    def note_phase(self, record: PodRecord, phase: Phase) -> None:
        """A pod is in this phase now; its gang is sent again if its endings have changed."""
        pod = record.pod
        group = group_key(record.group_ref, pod.namespace) or self._job_group(record)
        for each in sorted(self._endings.note(pod.path, group, pod.task, phase)):
            old = self.sent.get(_name(each))
            if old is not None:
                self._set(replace(old, **self._ended(each)))
        if phase in ("Deleted", "Evicted"):
            self._withdraw(record, group)

    def _job_group(self, record: PodRecord) -> Key | None:
        job, namespace = record.group_ref.job, record.pod.namespace
        if job is None:
            return None
        return self.of_jobs.group(job, namespace, self._store.objects)

    def refresh(
        self, touched: Iterable[Key], queues: bool, age: Callable[[Manifest], int]
    ) -> set[Key]:
        """Send the gangs that differ after a change of the `touched` objects.

        Without `queues`, gangs are in none; `age` gives the age of a group. Returns the keys of the
        groups that were checked.
        """
        touched = set(touched)
        jobs = {each for each in touched if each[0] in _JOB_KINDS}
        touched |= self.of_jobs.refresh(jobs, self._store.objects)
        if {kind for kind, _, _ in touched} & _KINDS_OF_ALL_GANGS:
            touched |= {each for each in self._store.objects if each[0] == gangs.KIND}
            touched |= {_key(name) for name in self.sent}
        groups = {each for each in touched if each[0] == gangs.KIND}
        for each in sorted(groups):
            self._refresh(each, queues, age)
        return groups | jobs | self.of_jobs.note_given(groups, self._store.objects)

    def of_record(self, record: PodRecord) -> str | None:
        """The name of the gang of a pod, if it is in one: that it names, or that of its job."""
        ref, namespace = record.group_ref, record.pod.namespace
        group = group_key(ref, namespace) or self._job_group(record)
        name = None if group is None else _name(group)
        return name if name in self.sent else None

    def _refresh(self, group: Key, queues: bool, age: Callable[[Manifest], int]) -> None:
        name = _name(group)
        manifest = self.of_jobs.in_force(group, self._store.objects)
        old = self.sent.get(name)
        if manifest is None and group in self._declared:
            self._refresh_declared(group)
            return
        if manifest is None:
            if self.sent.pop(name, None) is not None:
                self._send(GangGone(name))
            return
        created = old.created if old is not None else age(manifest)
        gang = self._store.gang(manifest, created, queues)
        near = self._demands.of_group(manifest)
        self._set(replace(gang, topology=near, **self._ended(group)))

    def renew_topology(self, name: str) -> None:
        """A pod of a gang has changed what the gang asks for: send the gang, if it is another."""
        old, manifest = self.sent.get(name), self._store.objects.get(_key(name))
        if old is not None and manifest is not None:
            self._set(replace(old, topology=self._demands.of_group(manifest)))

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
