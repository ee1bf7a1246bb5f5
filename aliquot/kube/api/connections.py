"""Connections to one API server that are kept alive: on each, one request and its whole answer.

Calls are many and small: a binding, a condition, an event. What a general HTTP client does for each
of them took more processor time than a decision does. Here a request is written in one piece, and
its answer is read by `AnswerReader`. A request is sent once; whether it may be sent again is for
the caller to say. Watches, and calls through a proxy, go by aiohttp (see `client`).
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp

from aliquot.kube.api.answer_reader import Answer, AnswerReader
from aliquot.sockets import Sockets

_IDLE_SECONDS = 15.0
"""How long a connection without a request is used again: API servers close theirs after 90 s, and
balancers before them some after a minute, not all of them audibly."""


class NotConnectedError(OSError):
    """There is no connection: the request was certainly not sent."""


class ClosedEarlyError(OSError):
    """The connection was kept alive, and has ended without a byte of the answer."""


class Connections:
    """The connections to one server; how many are used at a time is for the caller to bound."""

    def __init__(self, url: str, server_name: str | None, sockets: Sockets) -> None:
        where = urlsplit(url)
        self._is_https = where.scheme == "https"
        self._host = where.hostname or ""
        self._port = where.port or (443 if self._is_https else 80)
        self._server_name = server_name or self._host
        self._sockets = sockets
        self._idle: list[_Connection] = []

    async def ask(
        self, tls: ssl.SSLContext | None, request: bytes, connect_seconds: float
    ) -> Answer:
        """Send a request, and wait for its answer; OSError if there is none."""
        connection = self._kept(tls)
        if connection is None:
            connection = await self._connect(tls, connect_seconds)
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.abort()
            raise
        if answer.reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    def close(self) -> None:
        """Close all that are idle."""
        for each in self._idle:
            each.abort()
        self._idle.clear()

    def _kept(self, tls: ssl.SSLContext | None) -> "_Connection | None":
        """The connection that was used last, if it can be used again."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            fresh = now - connection.idle_since < _IDLE_SECONDS
            if fresh and connection.is_open and connection.tls is tls:
                return connection
            connection.abort()
        return None

    async def _connect(self, tls: ssl.SSLContext | None, seconds: float) -> "_Connection":
        """A new connection, to the first of the server's addresses that answers."""
        loop, problem = asyncio.get_running_loop(), OSError("the server has no address")
        try:
            async with asyncio.timeout(seconds):
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                for address in found:
                    try:
                        async with asyncio.timeout(seconds / len(found)):
                            return await self._connect_to(address, tls)
                    except (OSError, TimeoutError) as error:
                        problem = error
        except (OSError, TimeoutError) as error:
            problem = error
        raise NotConnectedError(str(problem) or "no connection in time") from problem

    async def _connect_to(
        self, address: aiohttp.AddrInfoType, tls: ssl.SSLContext | None
    ) -> "_Connection":
        loop, made = asyncio.get_running_loop(), self._sockets.make(address)
        made.setblocking(False)
        secure = tls or (True if self._is_https else None)
        name = self._server_name if secure is not None else None
        try:
            await loop.sock_connect(made, address[4])
        except BaseException:
            made.close()
            raise
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, connection = await loop.create_connection(
                lambda: _Connection(tls), sock=made, ssl=secure, server_hostname=name
            )
        except BaseException:
            with suppress(OSError):  # the loop, which has it by now, closes it then
                made.shutdown(socket.SHUT_RDWR)
            raise
        return connection


class _Connection(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self.idle_since = 0.0
        self.is_open = False
        self._transport: asyncio.Transport | None = None
        self._reader = AnswerReader()
        self._answer: asyncio.Future[Answer] | None = None
        self._answered = 0
        self._silent = True
        """Has no byte of the current answer come?"""

    async def ask(self, request: bytes) -> Answer:
        """Send a request, and wait for its answer."""
        assert self._transport is not None
        self._answer, self._silent = asyncio.get_running_loop().create_future(), True
        self._transport.write(request)
        answer = await self._answer
        self._answered += 1
        return answer

    def abort(self) -> None:
        """Close it at once, without waiting for a TLS shutdown."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be used."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True

    def data_received(self, data: bytes) -> None:
        """A part of the answer; what was not asked for ends the connection."""
        if self._answer is None or self._answer.done():
            self.abort()
            return
        self._silent = False
        try:
            answer = self._reader.feed(data)
        except ValueError as error:
            self._fail(OSError(str(error)))
            return
        if answer is not None:
            self._answer.set_result(answer)

    def eof_received(self) -> bool:
        """Nothing more comes."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended: perhaps with it an answer of unknown length."""
        self.is_open = False
        answer = self._reader.end() if error is None else None
        if answer is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
            return
        kept = self._answered and self._silent
        problem = str(error or "") or "the server has closed the connection"
        self._fail(ClosedEarlyError(problem) if kept else OSError(problem))

    def _fail(self, error: OSError) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
