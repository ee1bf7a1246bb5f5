"""The store: every object in memory, and one resource version that only grows.

Memory is the truth and SQLite the log. A write changes memory at once, so that the next write sees
it; it is acknowledged, and sent to watches, when it is in the log. Many writes share one commit. A
read is answered only when what it read is in the log: no client ever sees what a crash undoes.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from aliquot.json import Body
from aliquot.server.http.refusals import internal
from aliquot.server.storage.entry import Entry, Key, entry, restored_entry
from aliquot.server.storage.log import Log, Record
from aliquot.server.storage.window import Change, Window

_LAST = "\U0010ffff"
"""The highest character: no name sorts after it."""


class Bucket:
    """The objects of one storage, in order of namespace and name."""

    def __init__(self, since: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.window = Window(since)
        self._keys: list[Key] = []

    def put(self, new: Entry) -> None:
        """Add an object, or replace it."""
        if new.key not in self.entries:
            insort(self._keys, new.key)
        self.entries[new.key] = new

    def remove(self, key: Key) -> None:
        """Remove an object."""
        del self.entries[key]
        del self._keys[bisect_left(self._keys, key)]

    def fill(self, entries: dict[Key, Entry]) -> None:
        """Set all objects at once."""
        self.entries = entries
        self._keys = sorted(entries)

    def all(self, namespace: str | None) -> list[Entry]:
        """The objects of a namespace, or all, in order."""
        if namespace is None:
            return [self.entries[key] for key in self._keys]
        start = bisect_left(self._keys, (namespace, ""))
        end = bisect_left(self._keys, (namespace, _LAST))
        return [self.entries[key] for key in self._keys[start:end]]


class Store:
    """The buckets of all storages, and the current resource version."""

    def __init__(self, log: Log) -> None:
        self.version = log.version() or 1
        self.durable = self.version
        """The last version in the log."""
        self.listeners: list[Callable[[Change], None]] = []
        """Called with every change, before the write returns; a listener must not write."""
        self.broken: BaseException | None = None
        self._log = log
        self._buckets: dict[str, Bucket] = {}
        self._since = self.version
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._pending: list[Change] = []
        self._writing: list[Change] = []
        self._next: asyncio.Future[None] | None = None
        """Done when the batch that is being collected is in the log."""
        self._current: asyncio.Future[None] | None = None
        """Done when the batch that is being written is in the log."""
        self._flushing: asyncio.Task[None] | None = None
        self._restore()

    def bucket(self, storage: str) -> Bucket:
        """The objects of one storage."""
        found = self._buckets.get(storage)
        if found is None:
            found = self._buckets[storage] = Bucket(self._since)
        return found

    def get(self, storage: str, namespace: str, name: str) -> Entry | None:
        """One object, or None."""
        return self.bucket(storage).entries.get((namespace, name))

    def all(self, storage: str, namespace: str | None = None) -> list[Entry]:
        """The objects of a storage, in order of namespace and name."""
        return self.bucket(storage).all(namespace)

    def as_of(self, storage: str, version: int) -> list[Entry] | None:
        """The objects as they were at a version; None if the window no longer reaches it."""
        bucket = self.bucket(storage)
        since = bucket.window.since(version)
        if since is None:
            return None
        past = dict(bucket.entries)
        unpublished = [each for each in (*self._writing, *self._pending) if each.storage == storage]
        for change in reversed([*since, *unpublished]):
            if change.old is None:
                past.pop(change.entry.key, None)
            else:
                past[change.entry.key] = change.old
        return [past[key] for key in sorted(past)]

    def storages(self) -> list[str]:
        """The names of all storages used so far."""
        return list(self._buckets)

    def put(self, storage: str, body: Body) -> Entry:
        """Write an object at the next version."""
        self._check_log()
        self.version += 1
        new, bucket = entry(storage, body, self.version), self.bucket(storage)
        old = bucket.entries.get(new.key)
        bucket.put(new)
        self._record(Change(storage, "ADDED" if old is None else "MODIFIED", new, old))
        return new

    def remove(self, storage: str, body: Body) -> Entry:
        """Remove an object; its last state gets the next version."""
        self._check_log()
        self.version += 1
        last, bucket = entry(storage, body, self.version), self.bucket(storage)
        old = bucket.entries[last.key]
        bucket.remove(last.key)
        self._record(Change(storage, "DELETED", last, old))
        return last

    async def wait_durable(self) -> None:
        """Wait until everything that is in memory now is in the log."""
        if self.broken is not None:
            raise internal("the log cannot be written")
        waited_for = self._next or self._current
        if waited_for is not None:
            await asyncio.shield(waited_for)

    async def compact(self) -> None:
        """Drop changes that are too old from all windows, and give back what the log left free."""
        for bucket in self._buckets.values():
            bucket.window.trim()
        if self.broken is None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._log.compact)

    async def close(self) -> None:
        """Write the last batch, and close the log."""
        if self._flushing is not None:
            await self._flushing
        self._thread.shutdown()
        self._log.close()

    def _check_log(self) -> None:
        if self.broken is not None:
            raise internal("the log cannot be written")

    def _restore(self) -> None:
        found: dict[str, dict[Key, Entry]] = {}
        for storage, body in self._log.objects():
            restored = restored_entry(storage, body)
            found.setdefault(storage, {})[restored.key] = restored
        for storage, entries in found.items():
            self.bucket(storage).fill(entries)

    def _record(self, change: Change) -> None:
        self._pending.append(change)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        for listener in self.listeners:
            listener(change)

    async def _flush(self) -> None:
        """Write batch after batch until none is pending."""
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
        for change in batch:
            self.bucket(change.storage).window.append(change)
        for storage in {change.storage for change in batch}:
            self.bucket(storage).window.notify()


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
