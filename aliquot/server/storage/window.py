"""The window: the recent changes of one storage, from which watches are served.

A watch holds only the version it has reached, and reads the changes after it. A watch that is too
slow falls out of the window: it gets `410 Expired`, and its client lists anew. So a slow watch
never costs memory. The window is bounded by age, too: under a steady load its size is steady after
a minute or two.
"""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Literal

from aliquot.server.storage.entry import Entry

_MOST_CHANGES = 200_000
"""Changes kept for one storage: 50,000 pods created, bound, started and ended fit."""
_MOST_BYTES = 128 * 2**20
"""Bytes of objects kept for one storage, so that large objects do not fill the memory."""
_OVERHEAD = 2048
"""Bytes of a change beside its object: what selectors compare, measured for pods and Events."""
MOST_SECONDS = 300.0
"""How long a change is kept: 5 minutes, the interval at which kube-apiserver compacts etcd."""
FRESH_SECONDS = 75.0
"""How long it is kept whatever older ones take, as in kube-apiserver's watch cache."""
_MOST_AGED_BYTES = 8 * 2**20
"""Bytes of a storage with which changes are kept for longer than that: a few thousand changes. At
ten pods a second, five minutes of pods would be 90 MB, and no watch is that late."""
_FEWEST = 2_000
"""Changes kept whatever their bytes: a watch must be able to lag behind a burst."""
_FEWEST_AGED = 100
"""Changes kept whatever their age: a list in pages of a quiet storage goes on. As many as
`_FEWEST`, of Leases and quotas, would take half an hour to come, and megabytes."""
_BATCH = 500
"""Changes returned at a time, so that one watch does not block the event loop for long."""

Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True)
class Change:
    """An object was added, modified or deleted, at the version of its entry."""

    storage: str
    type: Type
    entry: Entry
    old: Entry | None
    _line: bytes = field(default=b"", repr=False)

    @property
    def line(self) -> bytes:
        """The change as a line of a watch; encoded once for all watches that keep up."""
        if not self._line:
            self._line = line(self.type, self.entry.body)
        return self._line

    @property
    def bytes(self) -> int:
        """About what it takes in memory; its line, which few changes keep, is not counted."""
        return len(self.entry.body) + _OVERHEAD

    def forget_line(self) -> None:
        """Drop the encoded line: nearly all watches have passed this change."""
        self._line = b""


def line(type_: str, body: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


class Window:
    """Changes in order of version; the oldest are dropped first."""

    def __init__(self, since: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.floor = since
        """The lowest version from which a watch can go on."""
        self._clock = clock
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._times: list[float] = []
        self._bytes = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change) -> None:
        """Add a change that is in the log."""
        self._changes.append(change)
        self._versions.append(change.entry.version)
        self._times.append(self._clock())
        self._bytes += change.bytes
        if len(self._changes) > _BATCH:
            self._changes[-_BATCH - 1].forget_line()
        if len(self._changes) > _MOST_CHANGES or (
            self._bytes > _MOST_BYTES and len(self._changes) > _FEWEST
        ):
            self._drop_oldest(len(self._changes) // 4)

    def trim(self) -> None:
        """Drop the changes that are too old, but for the last `_FEWEST_AGED`."""
        now = self._clock()
        count = bisect_right(self._times, now - MOST_SECONDS)
        aged = bisect_right(self._times, now - FRESH_SECONDS)
        kept = self._bytes - sum(change.bytes for change in self._changes[:count])
        while count < aged and kept > _MOST_AGED_BYTES:
            kept -= self._changes[count].bytes
            count += 1
        count = min(count, len(self._changes) - _FEWEST_AGED)
        if count > 0:
            self._drop_oldest(count)

    def notify(self) -> None:
        """Wake the watches that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def after(self, version: int, most: int = _BATCH) -> list[Change] | None:
        """The next changes after a version; None if some of them are dropped."""
        if version < self.floor:
            return None
        start = bisect_right(self._versions, version)
        return self._changes[start : start + most]

    def since(self, version: int) -> list[Change] | None:
        """All changes after a version; None if some of them are dropped."""
        if version < self.floor:
            return None
        return self._changes[bisect_right(self._versions, version) :]

    def next_change(self) -> Coroutine[None, None, object]:
        """To be awaited: done at the first change after this call, even one before the await."""
        return self._changed.wait()

    def _drop_oldest(self, count: int) -> None:
        self.floor = self._versions[count - 1]
        self._bytes -= sum(change.bytes for change in self._changes[:count])
        del self._changes[:count], self._versions[:count], self._times[:count]
