"""Who owns what: by the uid of every object where it is, and what it owns."""

from collections.abc import Iterator

from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change

Place = tuple[str, Key]
"""A storage, and a key in it."""


class Owned:
    """Kept up to date with the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, Place] = {}
        self._owned: dict[str, dict[Place, None]] = {}
        for storage in store.storages():
            for entry in store.all(storage):
                self._add(storage, entry)
        store.listeners.append(self._note)

    def place(self, uid: str) -> Place | None:
        """Where the object with this uid is; None if there is none."""
        return self._places.get(uid)

    def owner(self, uid: str) -> Entry | None:
        """The object with this uid, if it is there."""
        place = self._places.get(uid)
        return None if place is None else self._store.shelf(place[0]).entries.get(place[1])

    def of(self, uid: str, storage: str | None = None) -> Iterator[tuple[str, Entry]]:
        """The objects that an object owns, all or of one storage."""
        for where, key in list(self._owned.get(uid, ())):
            found = self._store.shelf(where).entries.get(key)
            if found is not None and (storage is None or where == storage):
                yield where, found

    def _note(self, change: Change) -> None:
        if change.old is not None and (
            change.type == "DELETED" or change.old.owners != change.entry.owners
        ):
            self._drop(change.storage, change.old)
        if change.type != "DELETED":
            self._add(change.storage, change.entry)

    def _add(self, storage: str, entry: Entry) -> None:
        self._places[entry.uid] = (storage, entry.key)
        for uid in entry.owners:
            self._owned.setdefault(uid, {})[storage, entry.key] = None

    def _drop(self, storage: str, entry: Entry) -> None:
        self._places.pop(entry.uid, None)
        for uid in entry.owners:
            there = self._owned.get(uid)
            if there is not None:
                there.pop((storage, entry.key), None)
                if not there:
                    del self._owned[uid]
