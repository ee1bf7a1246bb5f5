"""The registry: every kind that is served now, found by path or by name.

Built-in kinds are there from the start; kinds of CustomResourceDefinitions come and go with them.
"""

from collections.abc import Iterator

from aliquot.json import Body
from aliquot.server.kinds.built_in import BUILT_IN
from aliquot.server.kinds.kind import Kind, of_definition


class Registry:
    """Kinds by group, version and plural."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._kept: dict[str, Kind] = {}
        self.edition = 0
        """Grows when a kind comes, changes or goes."""
        for kind in BUILT_IN:
            self._add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that this path asks for."""
        return self._kinds.get((group, version, plural))

    def named(self, api_version: str, name: str) -> Kind | None:
        """The kind that an object or a reference names."""
        group, _, version = api_version.rpartition("/")
        for kind in self._kinds.values():
            if (kind.group, kind.version, kind.name) == (group, version, name):
                return kind
        return None

    def known(self, word: str) -> Kind:
        """A kind of which one knows that it is there, by its word."""
        return next(kind for kind in self._kept.values() if kind.word == word)

    def kept_in(self, storage: str) -> Kind:
        """The kind whose form is kept in a storage."""
        return self._kept[storage]

    def kept(self) -> list[Kind]:
        """One kind for every storage: the one whose form is kept."""
        return list(self._kept.values())

    def define(self, definition: Body) -> None:
        """A definition is there, or has changed."""
        self.undefine(definition)
        for kind in of_definition(definition):
            self._add(kind)

    def undefine(self, definition: Body) -> None:
        """A definition goes, with its kinds."""
        name = definition["metadata"]["name"]
        for key, kind in list(self._kinds.items()):
            if kind.definition is not None and kind.definition["metadata"]["name"] == name:
                del self._kinds[key]
                self._kept.pop(kind.resource, None)
                self.edition += 1

    def _add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        if not kind.storage:
            self._kept.setdefault(kind.resource, kind)
        self.edition += 1
