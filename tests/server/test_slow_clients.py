"""A client that sends slowly is cut off, wherever it connects; a watch that waits is not.

The limits are short here, and no test says how long something takes: only that it ends, or, where
it must go on, that it goes on after a client beside it was cut off.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import pytest
from aiohttp import web

from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.probes import Probes
from aliquot.kube.webhook import app as webhook
from aliquot.listener import BodyError, Limits, listening, read_body
from aliquot.server.app import Settings, running

SHORT = Limits(header_seconds=1.0, body_seconds=0.3)
"""A handshake must come in time on a busy machine, too."""
HANG = 60.0
"""Seconds after which a test fails because a connection is still open."""


class Place(NamedTuple):
    """Where a listener is, and a path that takes a body."""

    port: int
    tls: bool
    path: str = "/"
    token: str = ""


@asynccontextmanager
async def api_server(limits: Limits) -> AsyncIterator[Place]:
    settings = Settings(limits=limits, controllers=False)
    async with running(settings) as server:
        port = int(server.url.rpartition(":")[2])
        path = "/api/v1/namespaces/default/configmaps"
        yield Place(port, True, path, server.credentials.token)


@asynccontextmanager
async def webhook_server(limits: Limits) -> AsyncIterator[Place]:
    async with (
        running(Settings(controllers=False)) as server,
        Client(access.find(server.kubeconfig)) as client,
    ):
        namespace = {"metadata": {"name": "aliquot-system"}}
        await client.post("/api/v1/namespaces", namespace)
        async with webhook.webhook(client, webhook.Settings(limits=limits)) as app:
            await app.ready.wait()
            yield Place(app.port, True, "/validate")


@asynccontextmanager
async def probes_server(limits: Limits) -> AsyncIterator[Place]:
    probes = Probes(Health(), Metrics().registry, 0, "127.0.0.1", limits)
    async with BackgroundLoop(probes.run):
        while not probes.port:
            await asyncio.sleep(0.01)
        yield Place(probes.port, False, "/livez")


@asynccontextmanager
async def plain_server(limits: Limits) -> AsyncIterator[Place]:
    """One that reads the body, and streams for ever where the path says so."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/watch":
            stream = web.StreamResponse()
            await stream.prepare(request)
            while True:
                await stream.write(b"tick\n")
                await asyncio.sleep(0.05)
        try:
            body = await read_body(request, Limits())
        except BodyError as error:
            return web.Response(status=error.code)
        return web.Response(text=str(len(body)))

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    async with listening(runner, "127.0.0.1", 0, limits) as port:
        yield Place(port, False)


Serve = Callable[[Limits], AbstractAsyncContextManager[Place]]
Check = Callable[[Place], Awaitable[None]]
Wires = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(place: Place) -> Wires:
    context = None
    if place.tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", place.port, ssl=context)
        except ConnectionError:  # a machine so busy that the handshake came too late
            await asyncio.sleep(0.1)


def head(place: Place, *more: str, method: str = "POST", path: str = "") -> bytes:
    lines = [f"{method} {path or place.path} HTTP/1.1", "Host: x", *more]
    lines += [f"Authorization: Bearer {place.token}"] if place.token else []
    return "\r\n".join([*lines, "", ""]).encode()


async def dribble(wires: Wires, endless: Callable[[int], bytes]) -> bytes:
    """Send a little again and again until the server ends it; returns what it has answered."""
    reader, writer = wires
    answer = asyncio.create_task(reader.read())
    number = 0
    async with asyncio.timeout(HANG):
        while not answer.done():
            number += 1
            writer.write(endless(number))
            await asyncio.sleep(0.02)
    writer.transport.abort()
    return b"" if answer.exception() else answer.result()


async def ended(wires: Wires) -> bytes:
    """Wait until the server closes the connection; returns what it has answered."""
    try:
        async with asyncio.timeout(HANG):
            return await wires[0].read()
    except ConnectionError:
        return b""
    finally:
        wires[1].transport.abort()


async def check_headers(place: Place) -> None:
    """Silence, and headers that never end."""
    silent, slow = await connect(place), await connect(place)
    slow[1].write(b"GET / HTTP/1.1\r\n")
    first = dribble(slow, lambda number: f"X-{number}: a\r\n".encode())
    assert list(await asyncio.gather(first, ended(silent))) == [b"", b""]


async def check_bodies(place: Place) -> None:
    """Bodies that come byte by byte, of a given length and in chunks."""
    slow, chunked = await connect(place), await connect(place)
    slow[1].write(head(place, "Content-Length: 100000"))
    chunked[1].write(head(place, "Transfer-Encoding: chunked"))
    answers = await asyncio.gather(
        dribble(slow, lambda _: b" "), dribble(chunked, lambda _: b"1\r\n \r\n")
    )
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"the body took longer than 0.3 s" in answer


async def check_handshake(place: Place) -> None:
    assert await ended(await connect(place._replace(tls=False))) == b""


ALL = (check_headers, check_bodies, check_handshake)


@pytest.mark.parametrize(
    ("serve", "checks"),
    [(api_server, ALL), (webhook_server, ALL), (probes_server, (check_headers,))],
)
def test_slow_clients_are_cut(serve: Serve, checks: tuple[Check, ...]) -> None:
    async def story() -> None:
        async with serve(SHORT) as place:
            await asyncio.gather(*(check(place) for check in checks))

    asyncio.run(story())


def test_an_idle_connection_is_closed() -> None:
    async def story(place: Place) -> None:
        wires = await connect(place)
        wires[1].write(head(place, method="GET"))
        assert (await ended(wires)).startswith(b"HTTP/1.1 200 ")

    run_plain(story, Limits(idle_seconds=0.1))


def run_plain(story: Callable[[Place], Awaitable[None]], limits: Limits) -> None:
    async def run() -> None:
        async with plain_server(limits) as place:
            await story(place)

    asyncio.run(run())


def test_a_watch_goes_on_while_others_are_cut() -> None:
    async def story(place: Place) -> None:
        watch = await connect(place)
        watch[1].write(head(place, method="GET", path="/watch"))
        for _ in range(3):
            await ended(await connect(place))
        for _ in range(20):
            await asyncio.wait_for(watch[0].readuntil(b"tick\n"), HANG)
        watch[1].transport.abort()

    run_plain(story, SHORT)


def test_a_second_request_may_come_slowly_but_not_too_slowly() -> None:
    """The time of the headers begins with their first byte, again for every request."""

    async def story(place: Place) -> None:
        reader, writer = wires = await connect(place)
        for _ in range(3):
            request = head(place, "Content-Length: 2") + b"ok"
            for piece in (request[:10], request[10:30], request[30:]):
                writer.write(piece)
                await asyncio.sleep(0.01)
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANG)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert await reader.readexactly(1) == b"2"
        writer.write(b"GET / HTTP/1.1\r\n")
        assert await dribble(wires, lambda number: b"X-%d: a\r\n" % number) == b""

    run_plain(story, Limits(header_seconds=1.0))


def test_headers_have_a_limit_of_bytes() -> None:
    async def story(place: Place) -> None:
        reader, writer = await connect(place)
        writer.write(b"GET / HTTP/1.1\r\n")
        for number in range(100):
            writer.write(b"X-%d: %b\r\n" % (number, b"a" * 4000))
        assert b" 200 " not in await ended((reader, writer))

    run_plain(story, Limits(header_bytes=20_000))


def test_what_is_left_of_a_body_that_is_too_large_is_no_header() -> None:
    async def story(place: Place) -> None:
        reader, writer = await connect(place)
        writer.write(head(place, "Content-Length: 2000000"))
        for _ in range(20):
            writer.write(b"x" * 100_000)
            await asyncio.wait_for(writer.drain(), HANG)
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANG)
        assert answer.startswith(b"HTTP/1.1 413 ")
        writer.transport.abort()

    run_plain(story, Limits(body_bytes=1000, header_bytes=5000))


def test_further_connections_are_closed_at_once_and_room_comes_back() -> None:
    async def story(place: Place) -> None:
        first = await connect(place)
        first[1].write(head(place, method="GET", path="/watch"))
        await asyncio.wait_for(first[0].readuntil(b"tick\n"), HANG)
        second = await connect(place)
        second[1].write(head(place, method="GET", path="/watch"))
        await asyncio.wait_for(second[0].readuntil(b"tick\n"), HANG)
        assert await ended(await connect(place)) == b""
        first[1].transport.abort()
        async with asyncio.timeout(HANG):
            while True:
                third = await connect(place)
                third[1].write(head(place, "Connection: close", method="GET"))
                if b" 200 " in await ended(third):
                    break
        second[1].transport.abort()

    run_plain(story, Limits(connections=2))


def test_what_is_no_http_is_answered_with_400(caplog: pytest.LogCaptureFixture) -> None:
    async def story(place: Place) -> None:
        for nonsense in (b"\x16\x03\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
            wires = await connect(place)
            wires[1].write(nonsense)
            assert (await ended(wires)).startswith(b"HTTP/1.0 400 ")

    run_plain(story, Limits())
    assert not caplog.records
