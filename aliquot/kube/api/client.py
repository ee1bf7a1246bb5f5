"""The HTTP client for one API server.

A request is sent once, with two exceptions: one that was answered with 401 is sent again with a
renewed credential, and a GET is sent again if its kept-alive connection turns out to be closed.
Otherwise a write is never repeated: the caller decides that, and `UnreachableError.sent` tells it
whether the server may have carried the write out. Redirects are not followed, cookies are not kept,
and nothing is read from the environment.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientTimeout
from multidict import CIMultiDict
from yarl import URL

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.access import Access
from aliquot.kube.api.answer_reader import Answer
from aliquot.kube.api.connections import ClosedEarlyError, Connections, NotConnectedError
from aliquot.kube.api.credential import Credential
from aliquot.kube.api.refusals import refusal
from aliquot.sockets import Sockets
from aliquot.version import __version__

JSON = "application/json"
_HEADERS = {"User-Agent": f"aliquot/{__version__}", "Accept": JSON}
_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_CONNECT_SECONDS = 10.0
"""A server of the same network answers in milliseconds; three retransmitted SYNs fit in."""
_OPEN_SECONDS = 30.0
"""For the headers of a watch's answer: as long as a call may take by default."""
_BUFFER = 2**20
"""1 MiB a connection: most answers, and many events of a watch, are read in one piece."""
_LONGEST_LINE = 64 * 2**20
"""Bytes: etcd keeps 1.5 MiB of an object by default, so no sound server comes near it."""

Got = TypeVar("Got")
PatchType = Literal["merge", "strategic", "json"]
Query = Mapping[str, str | int] | None
_encode = msgspec.json.Encoder().encode


class Client:
    """Requests to one API server; to be used as an async context manager."""

    def __init__(self, access: Access, connections: int = 32) -> None:
        """At most `connections` calls are under way at a time; streams do not count."""
        self._access = access
        self._below = urlsplit(access.url).path.rstrip("/")
        self._turns = asyncio.Semaphore(connections)
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._connections = Connections(access.url, access.server_name, self._sockets)
        self._fixed: tuple[Credential | None, bytes] = None, b""
        """The headers that requests with a credential share, and that credential."""
        self._dated: str | None = None
        """The date of the last answer, as its header has it."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=self._sockets.make),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            # In a cluster's network, compressing a long list takes longer than sending it does.
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            timeout=ClientTimeout(total=None),
            read_bufsize=_BUFFER,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._connections.close()
            await session.close()
            await self._sockets.close()

    @property
    def server_time(self) -> int | None:
        """What the server's clock showed at its last answer, in nanoseconds since 1970."""
        try:
            dated = None if self._dated is None else parsedate_to_datetime(self._dated)
        except ValueError:
            return None
        return None if dated is None else int(dated.timestamp()) * 10**9

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = JSON,
        query: Query = None,
        timeout: float = 30.0,
    ) -> bytes:
        """Send a request, and return the body of the answer if its status is 2xx.

        The timeout includes the wait for a credential and for a connection. Raises `ApiError` for
        any other status, `UnreachableError` if there was no answer.
        """
        data = body if body is None or isinstance(body, bytes) else _encode(body)
        target = self._target(path, query)
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        used = await _in_time(self._access.credentials.credential(), timeout)
        try:
            return await self._once(used, method, target, data, content, _left(end, clock()))
        except ApiError as error:
            if error.code != HTTPStatus.UNAUTHORIZED:
                raise
            other = await _in_time(self._access.credentials.renew(used), _left(end, clock()))
            if other is None:
                raise
        return await self._once(other, method, target, data, content, _left(end, clock()))

    async def get(self, path: str, query: Query = None, *, timeout: float = 30.0) -> Any:
        """Read an object, or a list of them."""
        return _decoded(await self.call("GET", path, query=query, timeout=timeout))

    async def post(
        self, path: str, body: Any, query: Query = None, *, timeout: float = 30.0
    ) -> Any:
        """Create an object, or one of its subresources such as a binding or an eviction."""
        return _decoded(await self.call("POST", path, body, query=query, timeout=timeout))

    async def put(self, path: str, body: Any, query: Query = None, *, timeout: float = 30.0) -> Any:
        """Replace an object."""
        return _decoded(await self.call("PUT", path, body, query=query, timeout=timeout))

    async def delete(
        self, path: str, body: Any = None, query: Query = None, *, timeout: float = 30.0
    ) -> Any:
        """Delete an object; the body may be DeleteOptions."""
        return _decoded(await self.call("DELETE", path, body, query=query, timeout=timeout))

    async def patch(
        self,
        path: str,
        body: Any,
        patch_type: PatchType = "merge",
        query: Query = None,
        *,
        timeout: float = 30.0,
    ) -> Any:
        """Change parts of an object."""
        content = _PATCH_TYPES[patch_type]
        answer = await self.call("PATCH", path, body, content=content, query=query, timeout=timeout)
        return _decoded(answer)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query = None, *, silence: float = 660.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer line by line, until the server ends it.

        After `silence` seconds without a byte, the connection counts as dead.
        """
        url = self._url(self._target(path, query))
        used = await self._access.credentials.credential()
        try:
            response = await self._open(used, url, silence)
        except ApiError as error:
            if error.code != HTTPStatus.UNAUTHORIZED:
                raise
            other = await self._access.credentials.renew(used)
            if other is None:
                raise
            response = await self._open(other, url, silence)
        try:
            yield _guarded(split_lines(response.content.iter_any()), url)
        finally:
            _abort(response)

    async def _once(
        self,
        used: Credential,
        method: str,
        target: str,
        data: bytes | None,
        content: str,
        timeout: float,
    ) -> bytes:
        begun = False  # a request that waits for its turn has certainly not been sent
        try:
            async with asyncio.timeout(timeout), self._turns:
                begun = True
                if self._access.proxy is None:
                    answer = await self._ask(used, method, target, data, content, timeout)
                else:
                    answer = await self._ask_proxy(used, method, target, data, content, timeout)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(method, self._url(target), error, begun) from error
        self._dated = answer.headers.get("date", self._dated)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer.body
        raise refusal(answer.status, answer.headers, answer.body)

    async def _ask(
        self,
        used: Credential,
        method: str,
        target: str,
        data: bytes | None,
        content: str,
        timeout: float,
    ) -> Answer:
        """The answer to a request; a GET is sent again if its connection had ended before it."""
        if self._session is None:
            raise RuntimeError("the client is closed")
        request = self._request(used, method, target, data, content)
        connect_seconds = min(_CONNECT_SECONDS, 0.9 * timeout)
        try:
            return await self._connections.ask(used.tls, request, connect_seconds)
        except ClosedEarlyError:
            if method != "GET":
                raise
        self._connections.close()
        return await self._connections.ask(used.tls, request, connect_seconds)

    def _request(
        self, used: Credential, method: str, target: str, data: bytes | None, content: str
    ) -> bytes:
        if self._fixed[0] is not used:
            self._fixed = used, self._fixed_headers(used)
        body = "" if data is None else f"Content-Type: {content}\r\n"
        if data is not None or method != "GET":
            body += f"Content-Length: {len(data or b'')}\r\n"
        first = f"{method} {target} HTTP/1.1\r\n{body}".encode("ascii")
        return b"".join((first, self._fixed[1], b"\r\n", data or b""))

    def _fixed_headers(self, used: Credential) -> bytes:
        shared = {"Host": urlsplit(self._access.url).netloc, **_HEADERS}
        lines = [f"{name}: {value}" for name, value in (*shared.items(), *used.headers.items())]
        if any(not line.isprintable() for line in lines):
            raise ValueError("a header that is no text")  # and could be two
        return "".join(f"{line}\r\n" for line in lines).encode()

    async def _ask_proxy(
        self,
        used: Credential,
        method: str,
        target: str,
        data: bytes | None,
        content: str,
        timeout: float,
    ) -> Answer:
        """The same through a proxy."""
        url = self._url(target)
        response = await self._send(used, method, url, _timeout(timeout), data, content)
        async with response:
            body = await response.read()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, headers, body, False)

    async def _open(self, used: Credential, url: URL, silence: float) -> ClientResponse:
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                limits = ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=silence)
                response = await self._send(used, "GET", url, limits)
                if response.status < HTTPStatus.MULTIPLE_CHOICES:
                    return response
                async with response:
                    answer = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable("GET", url, error, True) from error
        raise refusal(response.status, response.headers, answer)

    async def _send(
        self,
        used: Credential,
        method: str,
        url: URL,
        timeout: ClientTimeout,
        data: bytes | None = None,
        content: str = JSON,
    ) -> ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is closed")
        headers = CIMultiDict(used.headers)
        if data is not None:
            headers["Content-Type"] = content
        return await self._session.request(
            method,
            url,
            data=data,
            headers=headers,
            ssl=used.tls or True,
            server_hostname=self._access.server_name,
            proxy=self._access.proxy,
            timeout=timeout,
            allow_redirects=False,
            middlewares=_MIDDLEWARES.get(method, ()),
        )

    def _target(self, path: str, query: Query) -> str:
        """What a request asks for: path and query."""
        target = f"{self._below}{path}"
        if query:
            target = f"{target}?{urlencode(query)}"
        if not target.isascii() or not target.isprintable() or " " in target:
            raise ValueError(f"not a path: {target!r:.200}")
        return target

    def _url(self, target: str) -> URL:
        where = urlsplit(self._access.url)
        return URL(f"{where.scheme}://{where.netloc}{target}", encoded=True)


async def _in_time(awaited: Awaitable[Got], seconds: float) -> Got:
    """Await a credential; fail if the request's own time is over before it is there."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        raise UnreachableError("there is no credential in time", sent=False) from None


def _left(end: float, now: float) -> float:
    """Seconds left, in steps of 0.1 so that `_timeout` finds them in its cache."""
    return max(round(end - now, 1), 0.1)


async def _send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Keep aiohttp from repeating a PUT or DELETE, which it takes for idempotent."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _unreachable(request.method, request.url, error, True) from error


_MIDDLEWARES = {"PUT": (_send_once,), "DELETE": (_send_once,)}


def _decoded(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreachableError(f"an answer that is not JSON: {error}", sent=True) from None


def _abort(response: ClientResponse) -> None:
    """Close a stream's connection at once, without waiting for a TLS shutdown."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The lines of a watch, one JSON object each; an incomplete last line is left out.

    Splitting by hand takes a third less time than aiohttp's `readline`, and allows lines as long as
    the largest object.
    """
    begun: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > _LONGEST_LINE:
            raise UnreachableError(f"a line of more than {_LONGEST_LINE} bytes", sent=True)
        if not rest:
            continue
        yield b"".join(begun)
        for line in rest[:-1]:
            yield line
        begun, size = [rest[-1]], len(rest[-1])


async def _guarded(lines: AsyncIterator[bytes], url: URL) -> AsyncIterator[bytes]:
    """The same lines, with `UnreachableError` for whatever ends them early."""
    try:
        async for line in lines:
            yield line
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable("GET", url, error, True) from error
    except RuntimeError as error:  # so aiohttp says that the connection is closed already
        if "closed" not in str(error):
            raise
        raise _unreachable("GET", url, error, True) from error


def _unreachable(method: str, url: URL, error: Exception, begun: bool) -> UnreachableError:
    not_connected = (
        NotConnectedError,
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
    )
    why = str(error) or "no answer in time"
    sent = begun and not isinstance(error, not_connected)
    return UnreachableError(f"{method} {url.origin()}{url.path}: {why}", sent=sent)


@lru_cache(maxsize=64)
def _timeout(timeout: float) -> ClientTimeout:
    """Connecting times out before the whole call: then the request was certainly not sent."""
    return ClientTimeout(sock_connect=min(_CONNECT_SECONDS, 0.9 * timeout))
