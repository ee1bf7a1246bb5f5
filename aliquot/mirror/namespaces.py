"""Namespaces, told to the engine with the labels by which pods select them.

A pod may select other pods by the labels of their namespaces. Every namespace has the label
`kubernetes.io/metadata.name`, also one without an object, which is there because a pod is in it.
"""

from collections.abc import Callable, Iterable

from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.engine import Event, NamespaceGone, NamespaceSet

NAME_LABEL = "kubernetes.io/metadata.name"
Labels = tuple[tuple[str, str], ...]


class Namespaces:
    """The namespaces that were last sent to the engine, with their labels."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.sent: dict[str, Labels] = {}
        self._send = send

    def refresh(self, changed: Iterable[Key], objects: dict[Key, Manifest]) -> None:
        """Send what differs of the namespaces among these objects."""
        for key in changed:
            if key[0] == "Namespace":
                self._refresh(key[2], objects.get(key))

    def ensure(self, name: str) -> None:
        """A pod is in this namespace, which may have no object (yet)."""
        if name not in self.sent:
            self._set(name, _labels(name, {}))

    def replay(self, send: Callable[[Event], None]) -> None:
        """Send all of them to a new engine."""
        for name, labels in self.sent.items():
            send(NamespaceSet(name, labels))

    def _refresh(self, name: str, manifest: Manifest | None) -> None:
        if manifest is None:
            if self.sent.pop(name, None) is not None:
                self._send(NamespaceGone(name))
            return
        written = text_map(manifest.metadata.labels, manifest, "metadata.labels")
        labels = _labels(name, written)
        if self.sent.get(name) != labels:
            self._set(name, labels)

    def _set(self, name: str, labels: Labels) -> None:
        self.sent[name] = labels
        self._send(NamespaceSet(name, labels))


def _labels(name: str, written: dict[str, str]) -> Labels:
    return tuple(sorted({**written, NAME_LABEL: name}.items()))
