"""The PodGroups of jobs: those that are derived from them, and those that users wrote for them.

A derived PodGroup holds from the moment its job is known, whether or not the operator has written
it to the cluster yet: so no pod of the job starts alone before that. One that a user wrote under
the same name, or that names the job as its owner, is used in its place.
"""

from collections.abc import Iterable, Iterator, Mapping

from aliquot.dialects.core.manifest import Key, Manifest, key, made_by_aliquot, owner_of
from aliquot.dialects.frameworks.gangs import gang_of, is_job, pod_groups
from aliquot.dialects.frameworks.members import JobRef
from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.dialects.volcano import gangs

Objects = Mapping[Key, Manifest]


class JobGroups:
    """The PodGroups of all known jobs."""

    def __init__(self) -> None:
        self._derived: dict[Key, Manifest] = {}
        self._of_job: dict[Key, tuple[Key, ...]] = {}
        self._given: dict[Key, Key] = {}
        """The PodGroups that users wrote for a job, by that."""
        self._owner: dict[Key, Key] = {}
        """The same, the other way round."""

    def refresh(self, jobs: Iterable[Key], objects: Objects) -> set[Key]:
        """Derive the PodGroups of these jobs anew; returns their keys, and those of former ones."""
        touched: set[Key] = set()
        for each in jobs:
            job, before = objects.get(each), self._of_job.pop(each, ())
            made = pod_groups(job) if job is not None and is_job(job) else []
            for group in before:
                del self._derived[group]
            self._derived.update((group.key, group) for group in made)
            if made:
                self._of_job[each] = tuple(group.key for group in made)
            touched.update(before, (group.key for group in made))
        return touched

    def note_given(self, groups: Iterable[Key], objects: Objects) -> set[Key]:
        """Note which of these PodGroups users wrote for a job; returns the jobs."""
        jobs: set[Key] = set()
        for each in groups:
            group, before = objects.get(each), self._owner.pop(each, None)
            if before is not None:
                self._given.pop(before, None)
                jobs.add(before)
            owner = None if group is None or made_by_aliquot(group) else owner_of(group)
            if owner is not None and owner[0] in BY_KIND and BY_KIND[owner[0]].copies is None:
                self._given[owner], self._owner[each] = each, owner
                jobs.add(owner)
        return jobs

    def in_force(self, group: Key, objects: Objects) -> Manifest | None:
        """The PodGroup with this key: the user's, else the one that is derived."""
        written = objects.get(group)
        return self._derived.get(group) if written is None or made_by_aliquot(written) else written

    def group(self, ref: JobRef, namespace: str, objects: Objects) -> Key | None:
        """The PodGroup of a pod of a job, if it has one."""
        for job in keys_of(ref, namespace):
            found = objects.get(job)
            if found is not None and is_job(found):
                if job in self._given:
                    return self._given[job]
                name = gang_of(found, ref.role, ref.index)
                return None if name is None else key(gangs.KIND, namespace, name)
        return None

    def derived(self) -> Iterator[Manifest]:
        """The PodGroups that are derived and not replaced by one of a user."""
        for job, groups in self._of_job.items():
            if job not in self._given:
                yield from (self._derived[each] for each in groups)


def keys_of(ref: JobRef, namespace: str) -> tuple[Key, ...]:
    """The keys of the jobs that a pod may be of."""
    return tuple((kind, namespace, ref.name) for kind in ref.kinds)
