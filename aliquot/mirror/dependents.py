"""The pods that must be looked at again when something else changes: by what they depend on."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from aliquot.dialects.core.manifest import Key
from aliquot.mirror.group_membership import group_key
from aliquot.mirror.pod_record import PodRecord

_Key = TypeVar("_Key")


class Dependents:
    """The uids of pods, by the name of the quota they ask for, and by their group and namespace."""

    def __init__(self) -> None:
        self.asking: dict[str, dict[str, None]] = {}
        self._tied: dict[Key, dict[str, None]] = {}

    def note(self, record: PodRecord, old: PodRecord | None = None) -> None:
        """A pod is there, like this, and was like that before."""
        uid = record.pod.uid
        if old is not None:
            self.forget(old)
        if record.asks_for is not None:
            self.asking.setdefault(record.asks_for, {})[uid] = None
        group = group_key(record.group_ref, record.pod.namespace)
        for each in (group, ("Namespace", "", record.pod.namespace)):
            if each is not None:
                self._tied.setdefault(each, {})[uid] = None

    def forget(self, record: PodRecord) -> None:
        """A pod is no longer known."""
        uid, namespace = record.pod.uid, record.pod.namespace
        if record.asks_for is not None:
            _drop(self.asking, record.asks_for, uid)
        for each in (group_key(record.group_ref, namespace), ("Namespace", "", namespace)):
            if each is not None:
                _drop(self._tied, each, uid)

    def of(self, objects: Iterable[Key]) -> Iterator[str]:
        """The pods that depend on any of these objects."""
        found = (uid for each in objects for uid in self._tied.get(each, ()))
        return iter(dict.fromkeys(found))


def _drop(known: dict[_Key, dict[str, None]], key: _Key, uid: str) -> None:
    """Forget a pod, and what nobody depends on any more: gangs come and go for ever."""
    uids = known.get(key, {})
    uids.pop(uid, None)
    if not uids:
        known.pop(key, None)
