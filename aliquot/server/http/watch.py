"""Watches: the changes after a resource version, as lines of JSON, until a timeout.

A watch holds no queue of its own: it reads the window of its storage (`storage.window`).
"""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass

import msgspec

from aliquot.json import Body
from aliquot.server.http.refusals import expired
from aliquot.server.kinds.kind import Kind
from aliquot.server.rendering import rendering
from aliquot.server.rendering.rendering import Representation
from aliquot.server.selectors.selection import Selection
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.entry import entry as entry_at
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change, line

_BOOKMARK_SECONDS = 10
"""Between bookmarks: a client that reconnects must still find its version in the window."""
_LONGEST = 24 * 3600
"""The longest timeoutSeconds that is honoured, so that no watch lasts for ever."""
_INITIAL_END = "k8s.io/initial-events-end"
_AT_ONCE = 500
"""Objects written in one piece at the start, so that other requests get their turn."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Watch:
    """What a client watches, from which version, and in which representation."""

    kind: Kind
    selection: Selection
    version: int | None
    """The version after which to begin; None: begin with the objects that exist."""
    seconds: float
    bookmarks: bool = False
    initial: bool = False
    """sendInitialEvents: begin with the objects that exist, and mark their end."""
    representation: Representation = "whole"

    @property
    def from_scratch(self) -> bool:
        """Does it begin with the objects that exist?"""
        return self.initial or not self.version


def duration(asked: str) -> float:
    """The seconds that a watch lasts; by default 30 to 60 minutes, as in kube-apiserver."""
    if asked.isdecimal() and 0 < int(asked) <= _LONGEST:
        return int(asked)
    return 1800 + random.random() * 1800


async def stream(store: Store, watch: Watch) -> AsyncIterator[bytes]:
    """The lines of a watch; several may be joined."""
    window = store.bucket(watch.kind.storage).window
    version = watch.version or 0
    end = asyncio.get_running_loop().time() + watch.seconds
    if watch.from_scratch:
        present, version = store.all(watch.kind.storage, watch.selection.namespace), store.version
        await store.wait_durable()
        for start in range(0, len(present), _AT_ONCE):
            some = present[start : start + _AT_ONCE]
            yield b"".join(
                _line(watch, "ADDED", each) for each in some if watch.selection.match(each)
            )
        if watch.initial and watch.bookmarks:
            yield _bookmark(watch, version, {_INITIAL_END: "true"})
    bookmarked = asyncio.get_running_loop().time()
    while True:
        changes = window.after(version)
        if changes is None:
            yield _expired(version, window.floor)
            return
        if changes:
            version = changes[-1].entry.version
            if text := b"".join(filter(None, (_event(watch, each) for each in changes))):
                yield text
            continue
        now = asyncio.get_running_loop().time()
        if watch.bookmarks and now >= min(bookmarked + _BOOKMARK_SECONDS, end):
            bookmarked, version = now, max(version, store.durable)
            yield _bookmark(watch, version, None)
        if now >= end:
            return
        await _wait(window.next_change(), min(end, bookmarked + _BOOKMARK_SECONDS) - now)


async def _wait(change: Coroutine[None, None, object], seconds: float) -> None:
    try:
        await asyncio.wait_for(change, max(seconds, 0.01))
    except TimeoutError:
        return


def _event(watch: Watch, change: Change) -> bytes | None:
    """The line of a change for this watch; an object that leaves its selection is DELETED."""
    chosen = watch.selection
    if chosen.everything and watch.representation == "whole" and not watch.kind.shared_storage:
        if chosen.namespace is not None and change.entry.namespace != chosen.namespace:
            return None
        return change.line
    is_in = change.type != "DELETED" and chosen.match(change.entry)
    was_in = change.old is not None and chosen.match(change.old)
    if is_in:
        return _line(watch, "MODIFIED" if was_in else "ADDED", change.entry)
    if not was_in or change.old is None:
        return None
    last = change.entry if change.type == "DELETED" else _last_selected(watch, change)
    return _line(watch, "DELETED", last)


def _last_selected(watch: Watch, change: Change) -> Entry:
    """An object that left a selection: its last selected state, at the version of the change."""
    assert change.old is not None
    return entry_at(watch.kind.storage, change.old.read(), change.entry.version)


def _line(watch: Watch, type_: str, entry: Entry) -> bytes:
    return line(type_, rendering.one(watch.kind, entry, watch.representation))


def _bookmark(watch: Watch, version: int, annotations: dict[str, str] | None) -> bytes:
    metadata: Body = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    kind = watch.kind
    body: Body = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
    if watch.representation == "metadata":
        body |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    elif watch.representation == "table":
        about = {"resourceVersion": str(version)}
        body = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": about}
        body |= {"columnDefinitions": [], "rows": []}
    return line("BOOKMARK", _encode(body))


def _expired(version: int, floor: int) -> bytes:
    status = expired(f"too old resource version: {version} ({floor})").status()
    return line("ERROR", _encode(status))
