"""A reflector: reports every object of a kind, and every change to it, to a listener.

It lists, then watches from the resourceVersion of the list, as client-go's reflector does. A
failure of the server or the network is logged once, and repaired after a pause: no deletion is
reported twice, none that happened in between is missed, and an object may be reported again
unchanged. The reflector keeps names, never objects, and must never raise for what a server does.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import Resource
from aliquot.kube.watch import decoding
from aliquot.kube.watch.decoding import ObjectDecoder, Read
from aliquot.kube.watch.known_names import KnownNames, Name

Object = TypeVar("Object")
Listened = TypeVar("Listened", contravariant=True)

_log = structlog.get_logger()
_TEMPORARY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
"""Refusals that another way of listing would not help against."""
_QUERY_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
"""How a server answers `sendInitialEvents` that it does not know."""
_AWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
"""How a proxy answers for a server that is not there."""
_LONGEST_AWAY = 5.0
"""Seconds between two attempts to reach a server that is away. Attempts cost it nothing, and those
of some 20 kinds, each at a moment of its own, are some five a second; so that all that happened
meanwhile is known 5 s after it is back, long before a Lease of 15 s could change hands."""
_SOUND_SECONDS = 10.0
"""A watch that lasted this long was sound: far longer than one that fails at once, and far shorter
than the minutes for which one is asked."""
_MOST_ATTEMPTS = 3
"""Failures in a row before another way of listing is tried: a restart of the server may cause one
or two."""


class Listener(Protocol[Listened]):
    """Receives what a reflector reports: in the event loop, in the order of the server."""

    def put(self, found: Listened, /) -> None:
        """An object was created or changed, or is reported again."""
        ...

    def gone(self, name: Name, /) -> None:
        """An object that was reported has been deleted."""
        ...

    def synced(self, resource: Resource, /) -> None:
        """The first list is complete."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Page size and times of a reflector."""

    page: int = 1000
    """Objects of one page of a list: at some KiB each, a few MiB an answer."""
    list_seconds: float = 60.0
    """How long to wait for one page."""
    watch_seconds: tuple[float, float] = (300.0, 600.0)
    """The bounds of a watch's random `timeoutSeconds`, as in client-go: not all end at once."""
    silence_seconds: float = 30.0
    """How much longer than that to wait for the server to end it."""
    absent_seconds: float = 15.0
    """How often to look for a kind that is not served: its definition may be installed later."""


class Reflector(Generic[Object]):
    """Reports the objects of one kind, all or those that selectors choose, to a listener."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        shape: type[Object],
        listener: Listener[Object],
        *,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        streaming: bool = True,
        pace: Pace | None = None,
    ) -> None:
        """Decode objects into `shape`: a struct with metadata, or `dict`.

        With `streaming`, the server is asked to send the list as the initial events of the watch.
        """
        self.resource = resource
        self.lists = 0
        """Complete lists so far."""
        self.events = 0
        """Changes that watches reported."""
        self.restarts = 0
        """Watches that ended and were opened again."""
        self.last_event: float | None = None
        """When the server last sent something, on the monotonic clock."""
        self.version: str | None = None
        """The resourceVersion that the watch has reached; None: a list comes first."""
        self._client = client
        self._listener = listener
        self._path = resource.path(namespace)
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._selectors = {key: text for key, text in selectors.items() if text}
        self._streaming = streaming
        self._pace = pace or Pace()
        self._decoder = ObjectDecoder(shape)
        self._known = KnownNames()
        self._synced = False
        self._watched = False
        self._attempts = 0
        self._expiries = 0
        self._absences = 0
        self._backoff, self._away = Backoff(), Backoff(_LONGEST_AWAY)
        """After refusals, and while the server is away: how long it was is nothing against it."""
        self._trouble = ""
        self._log = _log.bind(resource=resource.full_name)

    def __len__(self) -> int:
        """How many objects exist, as far as it has reported."""
        return len(self._known)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await asyncio.sleep(await self._round())

    def list_again(self) -> None:
        """In the next round, list again instead of resuming the watch."""
        self.version = None

    async def _round(self) -> float:
        """List if need be, and watch until it ends; returns the pause before the next round."""
        try:
            if self.version is None and not self._streaming:
                await self._list()
            await self._watch()
        except ApiError as error:
            return self._refused(error)
        except UnreachableError as error:
            self._warn("unreachable", str(error))
            self._failed(counts=error.sent and self.version is None)
            return self._away.pause()
        except msgspec.DecodeError as error:
            self._warn("garbled", str(error))
            self._failed(counts=True)
        return self._backoff.pause()

    async def _list(self) -> None:
        """Ask for all objects, page by page."""
        self._known.begin()
        rest = ""
        while True:
            query: dict[str, str | int] = {**self._selectors}
            if self._expiries < _MOST_ATTEMPTS:
                query["limit"] = self._pace.page
            if rest:
                query["continue"] = rest
            answer = await self._client.call(
                "GET", self._path, query=query, timeout=self._pace.list_seconds
            )
            page = self._decoder.page(answer)
            self._received()
            for read in page.objects:
                self._put(read)
            rest = page.rest
            if not rest:
                return self._listed(page.version)

    async def _watch(self) -> None:
        """Watch until the server ends it, with the list as initial events if there is none yet."""
        seconds = random.uniform(*self._pace.watch_seconds)
        query: dict[str, str | int] = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": max(1, round(seconds)),
        }
        if self.version is None:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            self._known.begin()
        else:
            query["resourceVersion"] = self.version
            self.restarts += self._watched
            self._watched = True
        silence = seconds + self._pace.silence_seconds
        async with self._client.stream(self._path, query, silence=silence) as lines:
            opened = time.monotonic()
            try:
                async for line in lines:
                    self._received()
                    if line:
                        self._handle(line)
            finally:
                if time.monotonic() - opened >= _SOUND_SECONDS:
                    self._backoff.reset()
                    self._away.reset()
        if self.version is None:
            self._failed(counts=True)

    def _handle(self, line: bytes) -> None:
        """Handle one event of a watch."""
        match decoding.type_of(line):
            case "ADDED" | "MODIFIED":
                read = self._decoder.event(line)
                self._put(read)
                self._advance(read)
            case "DELETED":
                read = decoding.name_in(line)
                self._drop(self._known.pop(read.name))
                self._advance(read)
            case "BOOKMARK":
                self._bookmarked(*decoding.bookmark(line))
            case "ERROR":
                raise decoding.error(line)
            case other:
                decoding.check(line)
                self._log.warning("event of an unknown type", type=other[:40])

    def _put(self, read: Read) -> None:
        if read.problem:
            self._log.warning("object skipped", object=read.name[:2], problem=read.problem)
            self._drop(self._known.see(read.name))
            return
        self._drop(self._known.put(read.name))
        self._listener.put(read.object)

    def _drop(self, name: Name | None) -> None:
        if name is not None:
            self._listener.gone(name)

    def _advance(self, read: Read) -> None:
        """Count an event of a watch; initial events are part of a list and do not count."""
        if self.version is not None:
            self.events += 1
            self._reached(read.version)

    def _bookmarked(self, version: str, complete: bool) -> None:
        if self.version is None and complete:
            self._watched = True
            self._listed(version)
        elif self.version is not None:
            self._reached(version)

    def _reached(self, version: str) -> None:
        """The watch works, and has reached this resourceVersion."""
        self.version = version or self.version
        self._attempts = 0
        self._progressed()
        if self._trouble:
            self._recovered()

    def _listed(self, version: str) -> None:
        """A list is complete: objects that were not on it have been deleted."""
        for name in self._known.end():
            self._listener.gone(name)
        self.version = version
        self._attempts, self._absences, self._expiries = 0, 0, 0
        self._progressed()
        self.lists += 1
        if self._trouble:
            self._recovered()
        self._sync()

    def _sync(self) -> None:
        if not self._synced:
            self._synced = True
            self._listener.synced(self.resource)

    def _refused(self, error: ApiError) -> float:
        """Handle an error status; returns how many seconds to wait."""
        if error.code == HTTPStatus.NOT_FOUND:
            return self._absent()
        if error.code == HTTPStatus.GONE:
            return self._expired()
        if error.code in _QUERY_REFUSED and self.version is None and self._streaming:
            self._streaming = False
            return 0.0
        self._warn(f"refused with {error.code}", str(error))
        self._failed(counts=error.code not in _TEMPORARY)
        if error.code in _AWAY:
            return self._away.pause(error.retry_after)
        return self._backoff.pause(error.retry_after)

    def _expired(self) -> float:
        """410: the resourceVersion, or the `continue` token of a list, is too old to go on."""
        if self.version is None:
            self._expiries += 1
            self._failed(counts=True)
        self.version = None
        return self._backoff.pause()

    def _absent(self) -> float:
        """404: the kind is not served. A server that is starting may say so once by mistake."""
        self._absences += 1
        self.version = None
        if self._known and self._absences == 1:
            return self._backoff.pause(1.0)
        self._known.begin()
        for name in self._known.end():
            self._listener.gone(name)
        if self.resource.foreign:
            self._log.debug("this kind is not served")
        else:
            self._warn("not served", "its definition is not installed")
        self._sync()
        return self._pace.absent_seconds * random.uniform(0.9, 1.0)

    def _failed(self, counts: bool) -> None:
        """After several failures in a row, list again; if listing failed, list in pages."""
        self._attempts += counts
        if self._attempts < _MOST_ATTEMPTS:
            return
        self._attempts = 0
        if self.version is None:
            self._streaming = False
        self.version = None

    def _received(self) -> None:
        self.last_event = time.monotonic()

    def _progressed(self) -> None:
        """A list is complete, or a watch has brought something: the server is at work."""
        self._backoff.ease()
        self._away.ease()

    def _warn(self, trouble: str, problem: str) -> None:
        """Log what is wrong, unless it was wrong in the same way before."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._log.warning("list or watch in trouble", trouble=trouble, problem=problem)

    def _recovered(self) -> None:
        self._log.info("list and watch are well again", trouble=self._trouble)
        self._trouble = ""
