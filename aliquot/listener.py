"""The HTTP listener of every server here: webhook, probes and embedded API server.

A client that connects and then sends slowly, or not at all, must not hold a connection for long: it
has a time for the TLS handshake, for the headers of a request and for its body, and there are at
most so many connections. An answer has no time limit here: a watch lasts for as long as it likes.
aiohttp limits idle connections only; `Connection` adds the limits of a request that is half sent.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler


@dataclass(frozen=True, slots=True)
class Limits:
    """What one listener grants its clients."""

    header_seconds: float = 10.0
    """For a TLS handshake, and for the headers of a request: a sound client takes milliseconds."""
    body_seconds: float = 30.0
    """For the body of a request: 3 MiB at 100 KiB/s, which any client of a cluster exceeds."""
    idle_seconds: float = 120.0
    """Between two requests: above the 90 s after which Go's clients close a connection, so that
    no API server sends a review on a connection that is being closed."""
    header_bytes: int = 64 * 2**10
    """For all headers of a request: a path and a token of 8 KiB each fit in many times."""
    body_bytes: int = 3 * 2**20
    """For the body of a request: as much as kube-apiserver accepts."""
    connections: int = 4096
    """Open at a time; some 100 KiB each with TLS. Further ones are closed at once."""


class BodyError(Exception):
    """A body that is too large or came too slowly; `code` is 413 or 408."""

    def __init__(self, code: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.code = code


async def read_body(request: web.BaseRequest, otherwise: Limits) -> bytes:
    """The whole body of a request, within the limits of its listener, or else these."""
    connection = request.protocol
    limits = connection.limits if isinstance(connection, Connection) else otherwise
    if (request.content_length or 0) > limits.body_bytes:
        raise _too_large(limits)
    if not request.body_exists:
        return b""
    content = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.content.iter_any():
                content += chunk
                if len(content) > limits.body_bytes:
                    raise _too_large(limits)
    except TimeoutError:
        problem = f"the body took longer than {limits.body_seconds:g} s"
        raise BodyError(HTTPStatus.REQUEST_TIMEOUT, problem) from None
    except web.RequestPayloadError as error:
        raise BodyError(HTTPStatus.BAD_REQUEST, f"the body cannot be read: {error}") from None
    return bytes(content)


@asynccontextmanager
async def listening(
    runner: web.BaseRunner,
    host: str | None,
    port: int,
    limits: Limits,
    tls: ssl.SSLContext | None = None,
    backlog: int = 128,
) -> AsyncIterator[int]:
    """Listen for as long as the block lasts; yields the port."""
    await runner.setup()
    manager = runner.server
    assert manager is not None
    loop = asyncio.get_running_loop()
    handshake = limits.header_seconds if tls is not None else None

    def accept() -> Connection:
        return Connection(manager, loop, limits)

    try:
        server = await loop.create_server(
            accept, host, port, ssl=tls, backlog=backlog, ssl_handshake_timeout=handshake
        )
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
    finally:
        await runner.cleanup()


class Connection(RequestHandler):
    """A connection that is closed if the headers of a request do not come in time."""

    __slots__ = ("_body", "_header_bytes", "_header_timer", "limits")

    def __init__(
        self, manager: web.Server, loop: asyncio.AbstractEventLoop, limits: Limits
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # None is how aiohttp itself writes none
            keepalive_timeout=limits.idle_seconds,
            lingering_time=limits.header_seconds,
        )
        self.limits = limits
        self._body: StreamReader | None = None
        """The body of the last request whose headers have come."""
        self._header_bytes = 0
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        assert self._manager is not None
        if len(self._manager.connections) >= self.limits.connections:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
            return
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take bytes: of a body, or of headers, which are complete with the next request."""
        if self._manager is None or self.transport is None:
            return
        before = self._request_count
        super().data_received(data)
        if self._request_count > before:
            self._stop_timer()
            if self._messages:
                self._body = self._messages[-1][1]
        elif self._current_request is None and not self._messages and self._is_body_read():
            self._header_bytes += len(data)
            if self._header_bytes > self.limits.header_bytes:
                self._cut()
            elif self._header_timer is None:
                self._await_headers()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP with 400: the client's mistake, which is not worth a traceback."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or request.writer.output_size:
            return super().handle_error(request, status, exc, message)
        response = web.Response(status=status, text=f"{message or HTTPStatus(status).phrase}\n")
        response.force_close()
        return response

    def _is_body_read(self) -> bool:
        """Is the last request complete? What is left of a refused body is no header."""
        return self._body is None or self._body.is_eof()

    def _await_headers(self) -> None:
        self._header_timer = self._loop.call_later(self.limits.header_seconds, self._cut)

    def _stop_timer(self) -> None:
        self._header_bytes = 0
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _cut(self) -> None:
        """Close the connection at once: a client that reads no answer could keep it open, too."""
        transport = self.transport
        self._stop_timer()
        self.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()


def _too_large(limits: Limits) -> BodyError:
    message = f"Request entity too large: limit is {limits.body_bytes}"
    return BodyError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
