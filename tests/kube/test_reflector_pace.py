"""How long a reflector waits before it asks again: soon after an outage, seldom if refused."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

from aliquot.dialects.core.objects import PlainWire
from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS, Resource
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector

AWAY = UnreachableError("connection refused", sent=False)
CUT = UnreachableError("connection reset", sent=True)
BOOKMARK = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7"}}}'


class Nobody:
    """A listener that nothing matters to."""

    def put(self, found: Any) -> None:
        pass

    def gone(self, name: Name) -> None:
        pass

    def synced(self, resource: Resource) -> None:
        pass


class Server:
    """In place of a client: each round ends with an error, after as many bookmarks as told."""

    def __init__(self) -> None:
        self.error: Exception = AWAY
        self.bookmarks = 0

    async def call(self, *_: Any, **__: Any) -> bytes:
        raise self.error

    @asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        if not self.bookmarks:
            raise self.error

        async def lines() -> AsyncIterator[bytes]:
            for _ in range(self.bookmarks):
                yield BOOKMARK
            raise self.error

        yield lines()


class Rounds:
    """A reflector that has listed, its pauses one by one."""

    def __init__(self) -> None:
        self.server = Server()
        client = cast("Client", self.server)
        self.reflector = Reflector(client, PODS, PlainWire, Nobody(), streaming=False)
        self.reflector.version = "1"

    def pauses(self, error: Exception, rounds: int, bookmarks: int = 0) -> Iterator[float]:
        self.server.error, self.server.bookmarks = error, bookmarks
        for _ in range(rounds):
            self.reflector.version = "1"
            yield asyncio.run(self.reflector._round())


def test_after_an_outage_of_any_length_a_server_is_found_within_seconds() -> None:
    rounds = Rounds()
    for error in (AWAY, ApiError(503, "", "no backend")):
        pauses = list(rounds.pauses(error, 50))
        assert max(pauses) <= 5
        assert min(pauses[10:]) >= 2.5, "but it is not asked all the time"
        assert len({round(each, 6) for each in pauses}) > 40, "nor by all at the same moment"
    refused = ApiError(403, "", "not ready to say who may do what")
    assert max(rounds.pauses(refused, 4)) <= 1.6, "the outage is nothing against it"


def test_a_server_that_refuses_is_asked_less_and_less() -> None:
    pauses = list(Rounds().pauses(ApiError(429, "", "busy"), 20))
    assert pauses[0] <= 0.2
    assert min(pauses[10:]) >= 15
    assert max(pauses) <= 30


def test_a_watch_that_brings_something_and_breaks_is_opened_about_once_a_second() -> None:
    rounds = Rounds()
    list(rounds.pauses(ApiError(429, "", "busy"), 20))
    for error in (CUT, ApiError(500, "", "internal")):
        list(rounds.pauses(error, 20))
        pauses = list(rounds.pauses(error, 20, bookmarks=1))
        assert min(pauses) >= 0.4
        assert max(pauses) <= 1.6
