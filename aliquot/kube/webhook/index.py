"""Who names what: objects by the words that lead to them.

A write to one quota concerns the few pods that name it, among tens of thousands that do not. An
object is kept under its words as long as it is there; what it says is never looked at again.
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

Word = tuple[str, str]
"""What kind of word it is, and the word."""

_KEPT = {
    *volcano.GROUP_ANNOTATIONS,
    *volcano.GROUP_LABELS,
    volcano.QUEUE,
    volcano.JOB_QUEUE,
    DURATION,
}


class Index:
    """Objects by their words."""

    def __init__(self) -> None:
        self._words: dict[Key, tuple[Word, ...]] = {}
        self._objects: dict[Word, dict[Key, Manifest]] = {}

    def put(self, manifest: Manifest, words: Iterable[Word]) -> None:
        """An object is there, and goes by these words alone."""
        self.drop(manifest.key)
        self._words[manifest.key] = tuple(words)
        for word in self._words[manifest.key]:
            self._objects.setdefault(word, {})[manifest.key] = manifest

    def drop(self, key: Key) -> None:
        """An object is not there any more."""
        for word in self._words.pop(key, ()):
            found = self._objects[word]
            del found[key]
            if not found:
                del self._objects[word]

    def find(self, *words: Word) -> Iterator[Manifest]:
        """The objects that any of these words lead to, each once."""
        seen: set[Key] = set()
        for word in words:
            for key, manifest in self._objects.get(word, {}).items():
                if key not in seen:
                    seen.add(key)
                    yield manifest


def slim(manifest: Manifest) -> Manifest | None:
    """A pod as far as it can stand in the way of anybody; None if it cannot, having ended."""
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


def words_of_pod(manifest: Manifest) -> Iterator[Word]:
    """What a pod says about where it belongs, and where it is; nonsense says nothing."""
    yield "namespace", manifest.namespace
    try:
        named = koordinator.quota_named(manifest)
        said = group_ref(template_views(manifest)[0], manifest)
    except InputError:
        return
    if named is not None:
        yield "quota", named
    if said.queue is not None:
        yield "queue", said.queue
    if said.gang is not None:
        yield "gang", f"{manifest.namespace}/{said.gang}"


def words_of(manifest: Manifest) -> Iterator[Word]:
    """What leads to an object that is no pod: its kind and namespace; the queue that it names."""
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
        if key in _KEPT or key.startswith(KOORDINATOR_PREFIX)
    }
    return kept or None
