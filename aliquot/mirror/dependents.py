"""Which pods depend on which objects, so that only these are refreshed when an object changes."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from aliquot.dialects.core.manifest import Key
from aliquot.mirror.group_membership import group_key
from aliquot.mirror.job_groups import keys_of
from aliquot.mirror.pod_record import PodRecord

_Key = TypeVar("_Key")


class Dependents:
    """The uids of pods by the quota they name, and by their PodGroup and namespace.

    With `owners`, also by the object that controls them.
    """

    def __init__(self, owners: bool = False) -> None:
        self._owners = owners
        self.by_quota_name: dict[str, dict[str, None]] = {}
        self._by_object: dict[Key, dict[str, None]] = {}

    def add(self, record: PodRecord, old: PodRecord | None = None) -> None:
        """Add a pod, in place of its `old` record if it has one."""
        uid = record.pod.uid
        if old is not None:
            self.remove(old)
        if record.named_quota is not None:
            self.by_quota_name.setdefault(record.named_quota, {})[uid] = None
        for each in self._objects(record):
            if each is not None:
                self._by_object.setdefault(each, {})[uid] = None

    def remove(self, record: PodRecord) -> None:
        """Remove a pod."""
        uid = record.pod.uid
        if record.named_quota is not None:
            _drop(self.by_quota_name, record.named_quota, uid)
        for each in self._objects(record):
            if each is not None:
                _drop(self._by_object, each, uid)

    def _objects(self, record: PodRecord) -> tuple[Key | None, ...]:
        namespace, job = record.pod.namespace, record.group_ref.job
        found = group_key(record.group_ref, namespace), ("Namespace", "", namespace)
        jobs = keys_of(job, namespace) if job is not None else ()
        return (*found, *jobs, record.owner) if self._owners else (*found, *jobs)

    def of(self, objects: Iterable[Key]) -> Iterator[str]:
        """The pods that depend on any of these objects."""
        found = (uid for each in objects for uid in self._by_object.get(each, ()))
        return iter(dict.fromkeys(found))


def _drop(known: dict[_Key, dict[str, None]], key: _Key, uid: str) -> None:
    """Remove a pod, and a key that no pod depends on any more, so that old gangs do not pile up."""
    uids = known.get(key, {})
    uids.pop(uid, None)
    if not uids:
        known.pop(key, None)
