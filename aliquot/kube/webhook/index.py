"""An index of the cached objects by what they refer to: namespace, quota, queue, gang.

A write to one quota concerns the few pods that refer to it, among tens of thousands. The keys of an
object are computed once, when it is put.
"""

from collections.abc import Iterable, Iterator

from aliquot.dialects.core import pods
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX, Key, Manifest
from aliquot.dialects.core.objects import Metadata, PodWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.simulation_annotations import DURATION
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.volcano import gangs
from aliquot.dialects.volcano import keys as volcano
from aliquot.errors import InputError
from aliquot.mirror.group_membership import group_ref

IndexKey = tuple[str, str]
"""The type of a reference, such as `quota`, and its value."""

_KEPT_LABELS = {
    *volcano.GROUP_ANNOTATIONS,
    *volcano.GROUP_LABELS,
    volcano.QUEUE,
    volcano.JOB_QUEUE,
    DURATION,
}
"""The labels and annotations of a pod that rules read, besides Koordinator's."""


class Index:
    """Objects by the keys they are found under."""

    def __init__(self) -> None:
        self._keys: dict[Key, tuple[IndexKey, ...]] = {}
        self._objects: dict[IndexKey, dict[Key, Manifest]] = {}

    def put(self, manifest: Manifest, index_keys: Iterable[IndexKey]) -> None:
        """Add an object under these keys, and remove it from all others."""
        self.drop(manifest.key)
        self._keys[manifest.key] = tuple(index_keys)
        for index_key in self._keys[manifest.key]:
            self._objects.setdefault(index_key, {})[manifest.key] = manifest

    def drop(self, key: Key) -> None:
        """Remove an object."""
        for index_key in self._keys.pop(key, ()):
            found = self._objects[index_key]
            del found[key]
            if not found:
                del self._objects[index_key]

    def find(self, *index_keys: IndexKey) -> Iterator[Manifest]:
        """The objects under any of these keys, each once."""
        seen: set[Key] = set()
        for index_key in index_keys:
            for key, manifest in self._objects.get(index_key, {}).items():
                if key not in seen:
                    seen.add(key)
                    yield manifest


def slim(manifest: Manifest) -> Manifest | None:
    """A pod with only what rules read of other pods; None if it has ended."""
    content = manifest.content
    assert isinstance(content, PodWire)
    if pods.finished(content.status):
        return None
    whole = content.metadata
    metadata = Metadata(
        name=whole.name,
        namespace=whole.namespace,
        labels=_kept(whole.labels),
        annotations=_kept(whole.annotations),
    )
    names = (manifest.kind, manifest.group, manifest.namespace, manifest.name, manifest.place)
    return Manifest(*names, PodWire(metadata=metadata), {})


def pod_keys(manifest: Manifest) -> Iterator[IndexKey]:
    """The keys of a pod: its namespace, and the quota, queue and gang it refers to."""
    yield "namespace", manifest.namespace
    try:
        named = koordinator.quota_named(manifest)
        group = group_ref(template_views(manifest)[0], manifest)
    except InputError:
        return
    if named is not None:
        yield "quota", named
    if group.queue is not None:
        yield "queue", group.queue
    if group.gang is not None:
        yield "gang", f"{manifest.namespace}/{group.gang}"


def object_keys(manifest: Manifest) -> Iterator[IndexKey]:
    """The keys of an object but a pod: its kind with its namespace, and the queue it names."""
    yield manifest.kind, manifest.namespace
    queue: str | None = None
    if manifest.kind == gangs.KIND:
        queue, _ = gangs.queue_of(manifest)
    elif manifest.kind == "Namespace":
        queue, _ = volcano.queue_named(manifest.metadata, manifest)
    if queue is not None:
        yield f"queue of {manifest.kind}", queue


def _kept(written: dict[str, object] | None) -> dict[str, object] | None:
    kept = {
        key: value
        for key, value in (written or {}).items()
        if key in _KEPT_LABELS or key.startswith(KOORDINATOR_PREFIX)
    }
    return kept or None
