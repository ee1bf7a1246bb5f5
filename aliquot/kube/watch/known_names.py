"""The names of the objects that a reflector has reported, to find out which were deleted.

A list shows the objects that exist, never those that were deleted since the last one. Only names
and uids are kept: the objects belong to the listener.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Name(NamedTuple):
    """An object; its uid tells it from earlier and later objects of the same name."""

    namespace: str
    name: str
    uid: str


class KnownNames:
    """The objects that exist, as far as the listener was told."""

    def __init__(self) -> None:
        self._uids: dict[tuple[str, str], str] = {}
        self._seen: set[tuple[str, str]] | None = None

    def __len__(self) -> int:
        return len(self._uids)

    def put(self, name: Name) -> Name | None:
        """Note that an object exists; returns the deleted object that had its name, if any."""
        key = (name.namespace, name.name)
        before = self._uids.get(key)
        if before != name.uid:
            self._uids[key] = name.uid
        if self._seen is not None:
            self._seen.add(key)
        return None if before is None or before == name.uid else Name(*key, before)

    def pop(self, name: Name) -> Name | None:
        """Note that an object was deleted; returns the one that the listener knows, if any."""
        key = (name.namespace, name.name)
        uid = self._uids.pop(key, None)
        return None if uid is None else Name(*key, uid)

    def see(self, name: Name) -> Name | None:
        """Note that an undecodable object exists; returns the deleted one that had its name."""
        key = (name.namespace, name.name)
        if self._uids.get(key, name.uid) != name.uid:
            return self.pop(name)
        if self._seen is not None:
            self._seen.add(key)
        return None

    def begin(self) -> None:
        """A list begins: note which objects are on it."""
        self._seen = set()

    def end(self) -> Iterator[Name]:
        """The list is complete: drop and return the objects that were not on it."""
        seen, self._seen = self._seen or set(), None
        for key in [key for key in self._uids if key not in seen]:
            yield Name(*key, self._uids.pop(key))
