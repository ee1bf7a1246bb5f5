"""The pods that must be looked at again when something else changes: by what they depend on.

It never hurts to remember more than that, so what a pod depended on before is only forgotten where
it is easy.
"""

from collections.abc import Iterable, Iterator

from aliquot.dialects.manifest import Key
from aliquot.mirror.belonging import group_key
from aliquot.mirror.record import PodRecord


class Dependents:
    """The uids of pods, by the name of the quota they ask for, and by their group and namespace."""

    def __init__(self) -> None:
        self.asking: dict[str, dict[str, None]] = {}
        self._tied: dict[Key, dict[str, None]] = {}

    def note(self, record: PodRecord, old: PodRecord | None = None) -> None:
        """A pod is there, like this, and was like that before."""
        uid = record.pod.uid
        if old is not None and old.asks_for is not None:
            del self.asking[old.asks_for][uid]
        if record.asks_for is not None:
            self.asking.setdefault(record.asks_for, {})[uid] = None
        group = group_key(record.ties, record.pod.namespace)
        for each in (group, ("Namespace", "", record.pod.namespace)):
            if each is not None:
                self._tied.setdefault(each, {})[uid] = None

    def of(self, objects: Iterable[Key]) -> Iterator[str]:
        """The pods that depend on any of these objects."""
        found = (uid for each in objects for uid in self._tied.get(each, ()))
        return iter(dict.fromkeys(found))
