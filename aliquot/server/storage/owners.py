"""The index of owner references: by uid, where an object is stored, and its dependents."""

from collections.abc import Iterator

from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change

Location = tuple[str, Key]
"""A storage, and a key in it."""


class OwnerIndex:
    """Where objects are stored and which objects they own; follows every change of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locations: dict[str, Location] = {}
        self._dependents: dict[str, dict[Location, None]] = {}
        for storage in store.storages():
            for entry in store.all(storage):
                self._add(storage, entry)
        store.listeners.append(self._on_change)

    def locate(self, uid: str) -> Location | None:
        """Where the object with this uid is stored; None if there is none."""
        return self._locations.get(uid)

    def get(self, uid: str) -> Entry | None:
        """The object with this uid; None if there is none."""
        found = self._locations.get(uid)
        return None if found is None else self._store.bucket(found[0]).entries.get(found[1])

    def owners_in(self, storage: str, change: Change) -> Iterator[Key]:
        """The keys of those owners of a changed object that are in this storage."""
        for uid in change.entry.owners:
            location = self._locations.get(uid)
            if location is not None and location[0] == storage:
                yield location[1]

    def dependents(self, uid: str, storage: str | None = None) -> Iterator[tuple[str, Entry]]:
        """The objects that an object owns: all, or those of one storage."""
        for where, key in list(self._dependents.get(uid, ())):
            found = self._store.bucket(where).entries.get(key)
            if found is not None and (storage is None or where == storage):
                yield where, found

    def _on_change(self, change: Change) -> None:
        if change.old is not None and (
            change.type == "DELETED" or change.old.owners != change.entry.owners
        ):
            self._drop(change.storage, change.old)
        if change.type != "DELETED":
            self._add(change.storage, change.entry)

    def _add(self, storage: str, entry: Entry) -> None:
        self._locations[entry.uid] = (storage, entry.key)
        for uid in entry.owners:
            self._dependents.setdefault(uid, {})[storage, entry.key] = None

    def _drop(self, storage: str, entry: Entry) -> None:
        self._locations.pop(entry.uid, None)
        for uid in entry.owners:
            found = self._dependents.get(uid)
            if found is not None:
                found.pop((storage, entry.key), None)
                if not found:
                    del self._dependents[uid]
