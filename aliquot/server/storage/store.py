"""The store: every object, in memory, and one version that never goes back.

Memory is the truth and SQLite the log. A write is made in memory at once, so that the next one sees
it; it is acknowledged, and watchers hear of it, when the log has it. Many writes share one commit.
Who reads waits for what it has read to be in the log, so nobody ever saw what a crash takes back.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from aliquot.json import Body
from aliquot.server.http.refusals import internal
from aliquot.server.storage.entry import Entry, Key, entry, restored
from aliquot.server.storage.log import Log, Record
from aliquot.server.storage.window import Change, Window

_AFTER_ALL = "\U0010ffff"


class Shelf:
    """The objects of one storage, in order of namespace and name."""

    def __init__(self, since: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.window = Window(since)
        self._keys: list[Key] = []

    def put(self, new: Entry) -> None:
        """Keep this one."""
        if new.key not in self.entries:
            insort(self._keys, new.key)
        self.entries[new.key] = new

    def remove(self, key: Key) -> None:
        """Keep it no longer."""
        del self.entries[key]
        del self._keys[bisect_left(self._keys, key)]

    def fill(self, entries: dict[Key, Entry]) -> None:
        """Keep all of these at once."""
        self.entries = entries
        self._keys = sorted(entries)

    def all(self, namespace: str | None) -> list[Entry]:
        """Those of a namespace, or all."""
        if namespace is None:
            return [self.entries[key] for key in self._keys]
        start = bisect_left(self._keys, (namespace, ""))
        end = bisect_left(self._keys, (namespace, _AFTER_ALL))
        return [self.entries[key] for key in self._keys[start:end]]


class Store:
    """All storages, and the version they have got to."""

    def __init__(self, log: Log) -> None:
        self.version = log.version() or 1
        self.durable = self.version
        """The last version that is in the log."""
        self.listeners: list[Callable[[Change], None]] = []
        """Told of every change at once, in the same breath; they must not write."""
        self.broken: BaseException | None = None
        self._log = log
        self._shelves: dict[str, Shelf] = {}
        self._since = self.version
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._pending: list[Change] = []
        self._writing: list[Change] = []
        self._next: asyncio.Future[None] | None = None
        """Done when the batch that is being gathered is in the log."""
        self._current: asyncio.Future[None] | None = None
        """The same, for the batch that is being written."""
        self._flushing: asyncio.Task[None] | None = None
        self._restore()

    def shelf(self, storage: str) -> Shelf:
        """The objects of one storage."""
        found = self._shelves.get(storage)
        if found is None:
            found = self._shelves[storage] = Shelf(self._since)
        return found

    def get(self, storage: str, namespace: str, name: str) -> Entry | None:
        """One object, or None."""
        return self.shelf(storage).entries.get((namespace, name))

    def all(self, storage: str, namespace: str | None = None) -> list[Entry]:
        """The objects of a storage, in order of namespace and name."""
        return self.shelf(storage).all(namespace)

    def as_of(self, storage: str, version: int) -> list[Entry] | None:
        """The objects as they were at a version; None if that is forgotten."""
        shelf = self.shelf(storage)
        since = shelf.window.since(version)
        if since is None:
            return None
        past = dict(shelf.entries)
        unpublished = [each for each in (*self._writing, *self._pending) if each.storage == storage]
        for change in reversed([*since, *unpublished]):
            if change.old is None:
                past.pop(change.entry.key, None)
            else:
                past[change.entry.key] = change.old
        return [past[key] for key in sorted(past)]

    def storages(self) -> list[str]:
        """Every storage that has been asked for."""
        return list(self._shelves)

    def put(self, storage: str, body: Body) -> Entry:
        """Keep an object; it gets the next version."""
        self._check()
        self.version += 1
        new, shelf = entry(storage, body, self.version), self.shelf(storage)
        old = shelf.entries.get(new.key)
        shelf.put(new)
        self._note(Change(storage, "ADDED" if old is None else "MODIFIED", new, old))
        return new

    def remove(self, storage: str, body: Body) -> Entry:
        """Keep an object no longer; what it was like at the end gets a version, too."""
        self._check()
        self.version += 1
        last, shelf = entry(storage, body, self.version), self.shelf(storage)
        old = shelf.entries[last.key]
        shelf.remove(last.key)
        self._note(Change(storage, "DELETED", last, old))
        return last

    async def settled(self) -> None:
        """Wait until everything that is in memory now is in the log, too."""
        if self.broken is not None:
            raise internal("the log cannot be written")
        waited_for = self._next or self._current
        if waited_for is not None:
            await asyncio.shield(waited_for)

    async def close(self) -> None:
        """Write what is left, and stop."""
        if self._flushing is not None:
            await self._flushing
        self._thread.shutdown()
        self._log.close()

    def _check(self) -> None:
        if self.broken is not None:
            raise internal("the log cannot be written")

    def _restore(self) -> None:
        found: dict[str, dict[Key, Entry]] = {}
        for storage, body in self._log.objects():
            kept = restored(storage, body)
            found.setdefault(storage, {})[kept.key] = kept
        for storage, entries in found.items():
            self.shelf(storage).fill(entries)

    def _note(self, change: Change) -> None:
        self._pending.append(change)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        for listener in self.listeners:
            listener(change)

    async def _flush(self) -> None:
        """Write batch after batch, until nothing is left to write."""
        loop = asyncio.get_running_loop()
        while self._next is not None:
            batch, done = self._pending, self._next
            self._pending, self._next, self._current = [], None, done
            self._writing = batch
            try:
                await loop.run_in_executor(self._thread, self._log.write, _records(batch))
            except BaseException as error:
                self.broken = error
                done.set_exception(internal("the log cannot be written"))
                done.exception()
                raise
            self._current, self._writing = None, []
            self._publish(batch)
            done.set_result(None)

    def _publish(self, batch: list[Change]) -> None:
        self.durable = batch[-1].entry.version
        touched = {change.storage for change in batch}
        for change in batch:
            self.shelf(change.storage).window.append(change)
        for storage in touched:
            self.shelf(storage).window.wake()


def _records(batch: list[Change]) -> list[Record]:
    return [
        Record(
            change.storage,
            change.entry.namespace,
            change.entry.name,
            change.entry.version,
            None if change.type == "DELETED" else change.entry.body,
        )
        for change in batch
    ]
