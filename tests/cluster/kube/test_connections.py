"""Connections: which are used again, and what becomes of requests on those that end."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from multidict import CIMultiDict

from aliquot.errors import UnreachableError
from aliquot.kube.api import connections
from aliquot.kube.api.access import Access, find
from aliquot.kube.api.client import Client
from aliquot.kube.api.credential import Credential, StaticCredential, with_token
from tests.cluster.kube.kubeconfigs import AUTHORITY, SERVER, config, data, served_by
from tests.cluster.kube.scripted import asking, says, scripted
from tests.cluster.kube.stories import story

_SAID = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\n{}"


class _Server:
    """Sends the same bytes whenever a request came, and may end the connection then."""

    def __init__(self, answer: bytes, ends: bool) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._answer = answer
        self._ends = ends

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while request := await reader.read(2**16):
            self.requests.append(request)
            writer.write(self._answer)
            if self._ends:
                break
        writer.close()


@asynccontextmanager
async def _sends(answer: bytes, ends: bool = False) -> AsyncIterator[tuple[Client, _Server]]:
    server = _Server(answer, ends)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    token = StaticCredential(Credential(with_token(CIMultiDict(), "a-token"), None))
    async with listening, Client(Access(f"http://127.0.0.1:{port}", token)) as client:
        yield client, server


@story
async def test_a_connection_is_used_again() -> None:
    async with _sends(_SAID % b"") as (client, server):
        for _ in range(3):
            await client.post("/a", {})
        await asyncio.gather(*(client.get("/a") for _ in range(3)))
        await asyncio.gather(*(client.get("/a") for _ in range(3)))
    assert server.connections == 3


@story
async def test_a_request_as_it_is_sent() -> None:
    async with _sends(_SAID % b"") as (client, server):
        await client.post("/a", {})
        await client.call("POST", "/a")
        await client.get("/a")
    first, second, third = (request.decode().split("\r\n") for request in server.requests)
    assert first[0] == "POST /a HTTP/1.1"
    assert {"Content-Length: 2", "Content-Type: application/json"} <= set(first)
    assert next(line for line in first if line.startswith("Host: 127.0.0.1:"))
    assert first[-2:] == ["", "{}"]
    assert "Content-Length: 0" in second
    assert not any(line.startswith("Content-") for line in third)


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        (_SAID % b"Connection: close\r\n", False),
        (_SAID.replace(b"1.1", b"1.0") % b"", False),
        (_SAID % b"" + b"more", False),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", True),
    ],
)
@story
async def test_a_connection_that_may_not_be_used_again(answer: bytes, ends: bool) -> None:
    async with _sends(answer, ends) as (client, server):
        for _ in range(2):
            assert await client.post("/a", {}) == {}
    assert server.connections == 2


@story
async def test_a_connection_that_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
    async with _sends(_SAID % b"") as (client, server):
        for _ in range(2):
            await client.post("/a", {})
    assert server.connections == 2


@story
async def test_what_is_no_answer() -> None:
    async with _sends(b"SSH-2.0-server\r\n\r\n") as (client, server):
        for _ in range(2):
            with pytest.raises(UnreachableError, match="SSH") as caught:
                await client.get("/a")
            assert caught.value.sent
    assert server.connections == 2


@pytest.mark.parametrize("wrong", ["/a b", "/a\r\nX: y", "/\u00e9"])
@story
async def test_a_path_that_would_be_more_than_one(wrong: str) -> None:
    async with _sends(_SAID % b"") as (client, server):
        with pytest.raises(ValueError, match="not a path"):
            await client.get(wrong)
    assert server.requests == []


@story
async def test_a_header_that_would_be_two() -> None:
    token = StaticCredential(Credential(with_token(CIMultiDict(), "a\r\nX: y"), None))
    async with asking(says({}), credentials=token) as (client, script):
        with pytest.raises(ValueError, match="a header"):
            await client.get("/a")
    assert script.asked == []


@story
async def test_another_certificate_has_connections_of_its_own(tmp_path: Path) -> None:
    """A connection shows the client certificate of the credential that it was made with."""
    seen = []

    async def notes(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        seen.append(request.transport.get_extra_info("peername"))
        return web.json_response({})

    async with scripted(notes, tls=served_by(SERVER)) as script:
        known = {"certificate-authority-data": data(AUTHORITY.pem)}
        access = find(config(tmp_path / "config", {"server": script.url, **known}))
        first = await access.credentials.credential()
        given = _Changing(first)
        async with Client(Access(script.url, given)) as client:
            for tls in (first.tls, first.tls, _trusting()):
                given.now = Credential(first.headers, tls)
                await client.get("/a")
    assert seen[0] == seen[1] != seen[2]


class _Changing:
    """A credential that a test replaces."""

    def __init__(self, now: Credential) -> None:
        self.now = now

    async def credential(self) -> Credential:
        return self.now

    async def renew(self, refused: Credential) -> Credential | None:
        return None


def _trusting() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(cadata=AUTHORITY.pem.decode())
    return made
