"""The registry: every kind that is served now, found by path or by name.

Built-in kinds are always served; a custom kind as long as its CustomResourceDefinition exists.
"""

from collections.abc import Iterator

from aliquot.json import Body
from aliquot.server.kinds.built_in import BUILT_IN
from aliquot.server.kinds.kind import Kind, of_definition


class Registry:
    """Kinds by group, version and plural."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._by_storage: dict[str, Kind] = {}
        self.edition = 0
        """Grows whenever a kind is added, changed or removed: the hash of the OpenAPI index."""
        for kind in BUILT_IN:
            self._add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind of a path."""
        return self._kinds.get((group, version, plural))

    def named(self, api_version: str, name: str) -> Kind | None:
        """The kind that an object or an owner reference names."""
        group, _, version = api_version.rpartition("/")
        for kind in self._kinds.values():
            if (kind.group, kind.version, kind.name) == (group, version, name):
                return kind
        return None

    def require(self, unique_name: str) -> Kind:
        """A kind that must be served, by its unique name."""
        return next(kind for kind in self._by_storage.values() if kind.unique_name == unique_name)

    def stored_in(self, storage: str) -> Kind:
        """The kind in whose form the objects of a storage are stored."""
        return self._by_storage[storage]

    def storage_kinds(self) -> list[Kind]:
        """One kind for each storage: the one in whose form objects are stored."""
        return list(self._by_storage.values())

    def define(self, definition: Body) -> None:
        """Serve the kinds of a definition that is new or has changed."""
        self.undefine(definition)
        for kind in of_definition(definition):
            self._add(kind)

    def undefine(self, definition: Body) -> None:
        """Stop serving the kinds of a definition."""
        name = definition["metadata"]["name"]
        for key, kind in list(self._kinds.items()):
            if kind.definition is not None and kind.definition["metadata"]["name"] == name:
                del self._kinds[key]
                self._by_storage.pop(kind.resource, None)
                self.edition += 1

    def _add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        if not kind.shared_storage and not kind.verbs:
            self._by_storage.setdefault(kind.resource, kind)
        self.edition += 1
