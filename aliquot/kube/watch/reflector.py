"""A reflector: tells a listener of every object of a kind, and of every change, for ever.

It lists, then watches from where the list ended. Whatever goes wrong with the server or on the way
to it is logged once, waited out and made good: the listener hears of nothing twice gone, misses
nobody who left meanwhile, and may be told of an object again that it knows. The reflector keeps
names, never objects, and never raises for what the server does.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import Resource
from aliquot.kube.watch import decoding
from aliquot.kube.watch.decoding import Decoding, Read
from aliquot.kube.watch.known_names import Known, Name

Object = TypeVar("Object")
Listened = TypeVar("Listened", contravariant=True)

_log = structlog.get_logger()
_GONE, _MISSING = 410, 404
_NOT_NOW = (401, 403, 429)
_NO_SUCH_QUERY = (400, 422)
_SOUND_SECONDS = 10.0
"""A watch that has lived this long was a sound one."""
_MOST_ATTEMPTS = 3


class Listener(Protocol[Listened]):
    """Who is told. All is told in the event loop, in the order in which it happened."""

    def put(self, found: Listened, /) -> None:
        """An object is new, or changed, or may have."""
        ...

    def gone(self, name: Name, /) -> None:
        """An object that was told of is there no more."""
        ...

    def synced(self, resource: Resource, /) -> None:
        """All that was there has been told, for the first time."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, how long, how often."""

    page: int = 1000
    """Objects asked for at a time."""
    list_seconds: float = 60.0
    """How long to wait for them."""
    watch_seconds: tuple[float, float] = (300.0, 600.0)
    """For how long a watch is asked for, at least and at most: not all end at the same time."""
    silence_seconds: float = 30.0
    """How much longer than that to wait for an end that does not come."""
    absent_seconds: float = 15.0
    """How often to look for a kind that is not served."""


class Reflector(Generic[Object]):
    """The objects of one kind, all or those of a selection, told as they come and go."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        shape: type[Object],
        tell: Listener[Object],
        *,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        streaming: bool = True,
        pace: Pace | None = None,
    ) -> None:
        """Tell of the objects of a kind in this shape: a struct with metadata, or `dict`.

        With `streaming`, servers that can are asked to send the list as part of the watch.
        """
        self.resource = resource
        self.lists = 0
        """Complete lists so far."""
        self.events = 0
        """Changes that watches told of."""
        self.restarts = 0
        """Watches that ended and were begun again."""
        self.last_event: float | None = None
        """When the server last said something, on the monotonic clock."""
        self.version: str | None = None
        """How far the watch has come; None: there must be a list first."""
        self._client = client
        self._tell = tell
        self._path = resource.path(namespace)
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._chosen = {key: text for key, text in selectors.items() if text}
        self._streaming = streaming
        self._pace = pace or Pace()
        self._decoding = Decoding(shape)
        self._known = Known()
        self._synced = False
        self._watched = False
        self._attempts = 0
        self._expiries = 0
        self._absences = 0
        self._backoff = Backoff()
        self._trouble = ""
        self._log = _log.bind(resource=resource.full_name)

    def __len__(self) -> int:
        """How many objects it has told of that are still there."""
        return len(self._known)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await asyncio.sleep(await self._round())

    def list_again(self) -> None:
        """List anew, instead of going on from where the watch is; from the next round on."""
        self.version = None

    async def _round(self) -> float:
        """List if need be, and watch until that ends; how many seconds to wait before the next."""
        try:
            if self.version is None and not self._streaming:
                await self._list()
            await self._watch()
        except ApiError as error:
            return self._refused(error)
        except UnreachableError as error:
            self._note("unreachable", str(error))
            self._failed(counts=error.sent and self.version is None)
        except msgspec.DecodeError as error:
            self._note("garbled", str(error))
            self._failed(counts=True)
        return self._backoff.pause()

    async def _list(self) -> None:
        """Ask for all objects, page by page."""
        self._known.begin()
        rest = ""
        while True:
            query: dict[str, str | int] = {**self._chosen}
            if self._expiries < _MOST_ATTEMPTS:
                query["limit"] = self._pace.page
            if rest:
                query["continue"] = rest
            said = await self._client.call(
                "GET", self._path, query=query, timeout=self._pace.list_seconds
            )
            page = self._decoding.page(said)
            self._heard()
            for read in page.objects:
                self._put(read)
            rest = page.rest
            if not rest:
                return self._listed(page.version)

    async def _watch(self) -> None:
        """Hear of changes until the server ends it; of what there is before that, if need be."""
        seconds = random.uniform(*self._pace.watch_seconds)
        query: dict[str, str | int] = {
            **self._chosen,
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
                    self._heard()
                    if line:
                        self._take(line)
            finally:
                if time.monotonic() - opened >= _SOUND_SECONDS:
                    self._backoff.reset()
        if self.version is None:
            self._failed(counts=True)

    def _take(self, line: bytes) -> None:
        """One line of a watch."""
        match decoding.type_of(line):
            case "ADDED" | "MODIFIED":
                read = self._decoding.event(line)
                self._put(read)
                self._advance(read)
            case "DELETED":
                read = decoding.whose(line)
                self._drop(self._known.pop(read.name))
                self._advance(read)
            case "BOOKMARK":
                self._marked(*decoding.bookmark(line))
            case "ERROR":
                raise decoding.error(line)
            case other:
                msgspec.json.decode(line)  # what is not even JSON is no event
                self._log.warning("event of an unknown type", type=other[:40])

    def _put(self, read: Read) -> None:
        if read.problem:
            self._log.warning("object skipped", object=read.name[:2], problem=read.problem)
            self._drop(self._known.see(read.name))
            return
        self._drop(self._known.put(read.name))
        self._tell.put(read.object)

    def _drop(self, name: Name | None) -> None:
        if name is not None:
            self._tell.gone(name)

    def _advance(self, read: Read) -> None:
        """A watch has come this far; a list that is under way has no version yet."""
        if self.version is not None:
            self.events += 1
            self._reached(read.version)

    def _marked(self, version: str, complete: bool) -> None:
        if self.version is None and complete:
            self._watched = True
            self._listed(version)
        elif self.version is not None:
            self._reached(version)

    def _reached(self, version: str) -> None:
        """The watch works, and has come this far."""
        self.version = version or self.version
        self._attempts = 0
        if self._trouble:
            self._recovered()

    def _listed(self, version: str) -> None:
        """A list is complete: who was not on it is gone."""
        for name in self._known.end():
            self._tell.gone(name)
        self.version = version
        self._attempts, self._absences, self._expiries = 0, 0, 0
        self.lists += 1
        if self._trouble:
            self._recovered()
        self._sync()

    def _sync(self) -> None:
        if not self._synced:
            self._synced = True
            self._tell.synced(self.resource)

    def _refused(self, error: ApiError) -> float:
        """The server has said no; how many seconds to wait."""
        if error.code == _MISSING:
            return self._absent()
        if error.code == _GONE:
            return self._expired()
        if error.code in _NO_SUCH_QUERY and self.version is None and self._streaming:
            self._streaming = False
            return 0.0
        self._note(f"refused with {error.code}", str(error))
        self._failed(counts=error.code not in _NOT_NOW)
        return self._backoff.pause(error.retry_after)

    def _expired(self) -> float:
        """What we know is too old to go on from, or a list took too long to read in pages."""
        if self.version is None:
            self._expiries += 1
            self._failed(counts=True)
        self.version = None
        return self._backoff.pause()

    def _absent(self) -> float:
        """The kind is not served. A server that has just begun may say so by mistake, once."""
        self._absences += 1
        self.version = None
        if self._known and self._absences == 1:
            return self._backoff.pause(1.0)
        self._known.begin()
        for name in self._known.end():
            self._tell.gone(name)
        self._note("not served", "")
        self._sync()
        return self._pace.absent_seconds * random.uniform(0.9, 1.0)

    def _failed(self, counts: bool) -> None:
        """What fails again and again is given up for what may work: pages, or a new list."""
        self._attempts += counts
        if self._attempts < _MOST_ATTEMPTS:
            return
        self._attempts = 0
        if self.version is None:
            self._streaming = False
        self.version = None

    def _heard(self) -> None:
        self.last_event = time.monotonic()

    def _note(self, trouble: str, problem: str) -> None:
        """Say what the trouble is, if it is another than before."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._log.warning("list or watch in trouble", trouble=trouble, problem=problem)

    def _recovered(self) -> None:
        self._log.info("list and watch are well again", trouble=self._trouble)
        self._trouble = ""
