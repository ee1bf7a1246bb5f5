"""A proxy between one scheduler and the API server that loses, delays, refuses and spoils.

It speaks plain HTTP to the scheduler, so that it can spoil what is inside; the server's TLS ends
here. Weather is asked at each request and each piece of a watch, and may change at any time.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from aliquot.kube.api import access

_LOOK = 0.02
_HOP = ("Transfer-Encoding", "Content-Length", "Connection", "Host")
"""Headers of one connection, not of what it carries."""
_REFUSALS = ((429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"))


@dataclass
class Weather:
    """What happens to requests; everything is off by default."""

    closed: bool = False
    """Connections are reset: the server is not reachable."""
    held: bool = False
    """Packets are lost: connections stay open, nothing passes; all passes once it is over."""
    deaf: bool = False
    """Requests arrive and are carried out, answers are lost."""
    delay: tuple[float, float] = (0.0, 0.0)
    """Seconds that each request, and each piece of a watch, is late."""
    refused: float = 0.0
    """The part of requests that is answered with 429 or 5xx."""
    truncated: float = 0.0
    """The part of answers, and of pieces of watches, that ends in the middle."""
    garbled: float = 0.0
    """The part of answers, and of pieces of watches, in which bytes are no longer text."""
    expired: bool = False
    """Watches are answered with 410: the server has forgotten its history."""


class Proxy:
    """Passes requests on, as far as the weather lets them."""

    def __init__(self, kubeconfig: Path, dice: random.Random) -> None:
        self.weather = Weather()
        self.port = 0
        self._kubeconfig = kubeconfig
        self._dice = dice
        self._session: aiohttp.ClientSession | None = None
        self._watches: set[asyncio.Event] = set()

    def cut_watches(self) -> None:
        """Break all watches that are under way."""
        for each in self._watches:
            each.set()

    def write_kubeconfig(self, file: Path) -> Path:
        """The server's kubeconfig, with the proxy as the server."""
        said = yaml.safe_load(self._kubeconfig.read_text())
        said["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        file.write_text(yaml.safe_dump(said))
        return file

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Proxy"]:
        """Serve for as long as the block lasts."""
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        reach = access.find(self._kubeconfig)
        tls = (await reach.credentials.credential()).tls
        connector = aiohttp.TCPConnector(limit=0, ssl=tls or True)
        timeout = aiohttp.ClientTimeout(total=None, connect=10)
        async with aiohttp.ClientSession(
            reach.url,
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        ) as session:
            self._session = session
            try:
                yield self
            finally:
                self.weather.closed = True
                self.cut_watches()
                await runner.cleanup()
                await asyncio.sleep(_LOOK)  # connections that were reset are closed by then

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        weather, body = self.weather, await request.read()
        await self._pass(request)
        if self._happens(weather.refused):
            return self._refusal(*self._dice.choice(_REFUSALS))
        watch = request.query.get("watch") in ("1", "true")
        if watch and weather.expired:
            return self._refusal(410, "Expired")
        assert self._session is not None
        headers = {key: text for key, text in request.headers.items() if key not in _HOP}
        try:
            async with self._session.request(
                request.method, request.rel_url, data=body or None, headers=headers
            ) as answer:
                if watch:
                    return await self._stream(request, answer)
                return await self._answer(request, answer)
        except (aiohttp.ClientError, OSError):
            return self._reset(request)  # the server itself is away

    async def _answer(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        data = await answer.read()
        if self.weather.deaf:
            return self._reset(request)
        await self._pass(request, late=False)
        headers = {key: text for key, text in answer.headers.items() if key not in _HOP}
        if self._happens(self.weather.truncated) and len(data) > 1:
            response = web.StreamResponse(status=answer.status, headers=headers)
            response.content_length = len(data)
            await response.prepare(request)
            await response.write(data[: len(data) // 2])
            return self._reset(request, response)
        return web.Response(status=answer.status, headers=headers, body=self._spoil(data))

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        headers = {key: text for key, text in answer.headers.items() if key not in _HOP}
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        cut = asyncio.Event()
        self._watches.add(cut)
        try:
            async for piece in _until(cut, answer.content):
                await self._pass(request)
                if self.weather.deaf:  # a stream never goes on after a part of it is lost
                    return self._reset(request, response)
                if self._happens(self.weather.truncated):
                    await response.write(piece[: len(piece) // 2])
                    return self._reset(request, response)
                await response.write(self._spoil(piece))
        finally:
            self._watches.discard(cut)
        if cut.is_set():
            return self._reset(request, response)
        return response

    async def _pass(self, request: web.Request, late: bool = True) -> None:
        """Wait for as long as nothing passes; raise where the connection is reset."""
        if late and self.weather.delay[1]:
            await asyncio.sleep(self._dice.uniform(*self.weather.delay))
        while self.weather.held:
            await asyncio.sleep(_LOOK)
        if self.weather.closed:
            self._reset(request)

    def _spoil(self, data: bytes) -> bytes:
        """Some bytes of it become such that no text has: wrong, and never plausible."""
        if not data or not self._happens(self.weather.garbled):
            return data
        spoiled = bytearray(data)
        for _ in range(1 + len(data) // 200):
            spoiled[self._dice.randrange(len(data))] = 0xFF
        return bytes(spoiled)

    def _happens(self, part: float) -> bool:
        return part > 0 and self._dice.random() < part

    @staticmethod
    def _refusal(code: int, reason: str) -> web.Response:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
        body = {**status, "code": code, "reason": reason, "message": "so the campaign wants it"}
        headers = {"Retry-After": "1"} if code == 429 else {}
        return web.json_response(body, status=code, headers=headers)

    @staticmethod
    def _reset(request: web.Request, response: Any = None) -> web.StreamResponse:
        """Break the connection; the handler ends."""
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError


async def _until(cut: asyncio.Event, content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Pieces of an answer as they come, until it is cut."""
    cutting = asyncio.ensure_future(cut.wait())
    try:
        while not cut.is_set():
            piece = asyncio.ensure_future(content.readany())
            await asyncio.wait((piece, cutting), return_when=asyncio.FIRST_COMPLETED)
            if not piece.done():
                piece.cancel()
                with suppress(asyncio.CancelledError):
                    await piece
                return
            if not (data := piece.result()):
                return
            yield data
    finally:
        cutting.cancel()
