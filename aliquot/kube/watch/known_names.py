"""The names that a reflector has told of, so that it can tell who is gone.

A list says who is there, never who has left. Only names and uids are kept: the objects are the
listener's.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Name(NamedTuple):
    """An object, as opposed to another that had or will have its name."""

    namespace: str
    name: str
    uid: str


class Known:
    """Who is there, as far as told."""

    def __init__(self) -> None:
        self._uids: dict[tuple[str, str], str] = {}
        self._seen: set[tuple[str, str]] | None = None

    def __len__(self) -> int:
        return len(self._uids)

    def put(self, name: Name) -> Name | None:
        """Somebody is there; who had the name before, if it was another."""
        key = (name.namespace, name.name)
        before = self._uids.get(key)
        if before != name.uid:
            self._uids[key] = name.uid
        if self._seen is not None:
            self._seen.add(key)
        return None if before is None or before == name.uid else Name(*key, before)

    def pop(self, name: Name) -> Name | None:
        """Somebody has left; who that was, if known."""
        key = (name.namespace, name.name)
        uid = self._uids.pop(key, None)
        return None if uid is None else Name(*key, uid)

    def see(self, name: Name) -> Name | None:
        """Somebody is there of whom nothing can be told; who had the name before, and is gone."""
        key = (name.namespace, name.name)
        if self._uids.get(key, name.uid) != name.uid:
            return self.pop(name)
        if self._seen is not None:
            self._seen.add(key)
        return None

    def begin(self) -> None:
        """A list begins: from now on those are seen who are put."""
        self._seen = set()

    def end(self) -> Iterator[Name]:
        """The list is complete: forget those it did not show, one by one."""
        seen, self._seen = self._seen or set(), None
        for key in [key for key in self._uids if key not in seen]:
            yield Name(*key, self._uids.pop(key))
