"""The window: what has changed lately among the objects of one storage, for those who watch.

A watcher holds nothing but the version it has got to, and asks for what came after. One that is
too slow falls out of the window, is told so, and lists anew; nobody's slowness costs memory.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Literal

from aliquot.server.storage.entry import Entry

_MOST_CHANGES = 200_000
_MOST_BYTES = 128 * 2**20
_FEWEST = 2_000

Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True)
class Change:
    """An object came, changed or went, at the version of its entry."""

    storage: str
    type: Type
    entry: Entry
    old: Entry | None
    _line: bytes = field(default=b"", repr=False)

    @property
    def line(self) -> bytes:
        """The change as a line of a watch, made once for all who watch."""
        if not self._line:
            self._line = line(self.type, self.entry.body)
        return self._line


def line(type_: str, body: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


class Window:
    """Changes in order of version, the oldest forgotten first."""

    def __init__(self, since: int) -> None:
        self.floor = since
        """Who has got this far can go on; who has not must list anew."""
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._bytes = 0
        self._news = asyncio.Event()

    def append(self, change: Change) -> None:
        """A change has happened, and is here to stay."""
        self._changes.append(change)
        self._versions.append(change.entry.version)
        self._bytes += len(change.entry.body)
        if len(self._changes) > _MOST_CHANGES or (
            self._bytes > _MOST_BYTES and len(self._changes) > _FEWEST
        ):
            self._forget(len(self._changes) // 4)

    def wake(self) -> None:
        """Tell those who wait that there is more."""
        self._news.set()
        self._news = asyncio.Event()

    def after(self, version: int, most: int = 500) -> list[Change] | None:
        """The next changes after this version; None if some of them are forgotten."""
        if version < self.floor:
            return None
        start = bisect_right(self._versions, version)
        return self._changes[start : start + most]

    def since(self, version: int) -> list[Change] | None:
        """All changes after this version; None if some of them are forgotten."""
        if version < self.floor:
            return None
        return self._changes[bisect_right(self._versions, version) :]

    def news(self) -> Coroutine[None, None, object]:
        """Something to wait for: more than there is now, even if it comes before anybody waits."""
        return self._news.wait()

    def _forget(self, count: int) -> None:
        self.floor = self._versions[count - 1]
        self._bytes -= sum(len(change.entry.body) for change in self._changes[:count])
        del self._changes[:count], self._versions[:count]
