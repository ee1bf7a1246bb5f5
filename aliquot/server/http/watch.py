"""Watching: what has changed since a version, line by line, for as long as the client likes."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass

import msgspec

from aliquot.dialects.core.documents import Body
from aliquot.server.http.refusals import expired
from aliquot.server.kinds.kind import Kind
from aliquot.server.rendering import rendering
from aliquot.server.rendering.rendering import Manner
from aliquot.server.selectors.selection import Selection
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.entry import entry as entry_at
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change, line

_BOOKMARK_SECONDS = 10
_LONGEST = 24 * 3600
_INITIAL_END = "k8s.io/initial-events-end"
_AT_ONCE = 500
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Watch:
    """What a client watches, from where, and how it wants it shown."""

    kind: Kind
    selection: Selection
    version: int | None
    """Where to go on; None: begin with what is there."""
    seconds: float
    bookmarks: bool = False
    initial: bool = False
    """Begin with what is there, and say when that is done."""
    manner: Manner = "whole"

    @property
    def from_scratch(self) -> bool:
        """Does it begin with what is there?"""
        return self.initial or not self.version


def patience(asked: str) -> float:
    """For how many seconds a watch goes on, at most."""
    if asked.isdecimal() and 0 < int(asked) <= _LONGEST:
        return int(asked)
    return 1800 + random.random() * 1800


async def lines(store: Store, watch: Watch) -> AsyncIterator[bytes]:
    """The lines of a watch; several may come at once."""
    window = store.bucket(watch.kind.storage).window
    version = watch.version or 0
    end = asyncio.get_running_loop().time() + watch.seconds
    if watch.from_scratch:
        there, version = store.all(watch.kind.storage, watch.selection.namespace), store.version
        await store.wait_durable()
        for start in range(0, len(there), _AT_ONCE):
            some = there[start : start + _AT_ONCE]
            yield b"".join(
                _line(watch, "ADDED", each) for each in some if watch.selection.match(each)
            )
        if watch.initial and watch.bookmarks:
            yield _bookmark(watch, version, {_INITIAL_END: "true"})
    marked = asyncio.get_running_loop().time()
    while True:
        changes = window.after(version)
        if changes is None:
            yield _gone(version, window.floor)
            return
        if changes:
            version = changes[-1].entry.version
            if text := b"".join(filter(None, (_said(watch, each) for each in changes))):
                yield text
            continue
        now = asyncio.get_running_loop().time()
        if watch.bookmarks and now - marked >= min(_BOOKMARK_SECONDS, watch.seconds):
            marked, version = now, max(version, store.durable)
            yield _bookmark(watch, version, None)
        if now >= end:
            return
        await _news(window.next_change(), min(end, marked + _BOOKMARK_SECONDS) - now)


async def _news(news: Coroutine[None, None, object], seconds: float) -> None:
    try:
        await asyncio.wait_for(news, max(seconds, 0.01))
    except TimeoutError:
        return


def _said(watch: Watch, change: Change) -> bytes | None:
    """A change as this watch sees it: what leaves a selection is deleted from it."""
    chosen = watch.selection
    if chosen.everything and watch.manner == "whole" and not watch.kind.shared_storage:
        if chosen.namespace is not None and change.entry.namespace != chosen.namespace:
            return None
        return change.line
    is_in = change.type != "DELETED" and chosen.match(change.entry)
    was_in = change.old is not None and chosen.match(change.old)
    if is_in:
        return _line(watch, "MODIFIED" if was_in else "ADDED", change.entry)
    if not was_in or change.old is None:
        return None
    last = change.entry if change.type == "DELETED" else _departed(watch, change)
    return _line(watch, "DELETED", last)


def _departed(watch: Watch, change: Change) -> Entry:
    """An object that leaves a selection, as it was in it, at the version at which it left."""
    assert change.old is not None
    return entry_at(watch.kind.storage, change.old.read(), change.entry.version)


def _line(watch: Watch, type_: str, entry: Entry) -> bytes:
    return line(type_, rendering.one(watch.kind, entry, watch.manner))


def _bookmark(watch: Watch, version: int, annotations: dict[str, str] | None) -> bytes:
    metadata: Body = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    kind = watch.kind
    body: Body = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
    if watch.manner == "metadata":
        body |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    elif watch.manner == "table":
        about = {"resourceVersion": str(version)}
        body = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": about}
        body |= {"columnDefinitions": [], "rows": []}
    return line("BOOKMARK", _encode(body))


def _gone(version: int, floor: int) -> bytes:
    status = expired(f"too old resource version: {version} ({floor})").status()
    return line("ERROR", _encode(status))
