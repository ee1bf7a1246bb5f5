"""The client: requests to one API server, and what it says to them.

It sends a request once. Only one that was refused for its credential is sent again, with another,
and one that merely reads when a connection turns out to be stale: whoever writes decides for
itself whether to write again, and `UnreachableError.sent` tells what it must reckon with. There are
no redirects and no cookies, and nothing is read from the environment.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientTimeout
from multidict import CIMultiDict
from yarl import URL

import aliquot
from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.access import Access
from aliquot.kube.api.credential import Credential
from aliquot.kube.api.lines import lines
from aliquot.kube.api.refusals import refusal

JSON = "application/json"
_FORMS = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_UNKNOWN = 401
_CONNECT_SECONDS = 10.0
_OPEN_SECONDS = 30.0
_BUFFER = 2**20
_PROBES = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))

Got = TypeVar("Got")
Form = Literal["merge", "strategic", "json"]
Query = Mapping[str, str | int] | None
_encode = msgspec.json.Encoder().encode


class Client:
    """Speaks to one server; to be used as an async context manager."""

    def __init__(self, access: Access, connections: int = 32) -> None:
        """Make calls over so many connections at most; streams have their own."""
        self._access = access
        self._server = URL(access.url, encoded=True)
        self._turns = asyncio.Semaphore(connections)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"aliquot/{aliquot.__version__}", "Accept": JSON},
            # Lists are long, the network is near: to compress them takes longer than to send them.
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
            await session.close()
            await asyncio.sleep(0)  # connections that were broken off are closed by the loop

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
        """Send a request, and return what the server says to it if it says yes.

        The time includes that of waiting for a credential and for a connection. `ApiError` is a no,
        `UnreachableError` no answer at all.
        """
        data = body if body is None or isinstance(body, bytes) else _encode(body)
        url = self._url(path, query)
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        used = await _in_time(self._access.proof.credential(), timeout)
        try:
            return await self._once(used, method, url, data, content, _left(end, clock()))
        except ApiError as error:
            if error.code != _UNKNOWN:
                raise
            other = await _in_time(self._access.proof.renew(used), _left(end, clock()))
            if other is None:
                raise
        return await self._once(other, method, url, data, content, _left(end, clock()))

    async def get(self, path: str, query: Query = None, *, timeout: float = 30.0) -> Any:
        """Read an object, or a list of them."""
        return _decoded(await self.call("GET", path, query=query, timeout=timeout))

    async def post(
        self, path: str, body: Any, query: Query = None, *, timeout: float = 30.0
    ) -> Any:
        """Make an object, or have something done to one."""
        return _decoded(await self.call("POST", path, body, query=query, timeout=timeout))

    async def put(self, path: str, body: Any, query: Query = None, *, timeout: float = 30.0) -> Any:
        """Write an object anew."""
        return _decoded(await self.call("PUT", path, body, query=query, timeout=timeout))

    async def delete(
        self, path: str, body: Any = None, query: Query = None, *, timeout: float = 30.0
    ) -> Any:
        """Delete an object; the body may say how."""
        return _decoded(await self.call("DELETE", path, body, query=query, timeout=timeout))

    async def patch(
        self,
        path: str,
        body: Any,
        form: Form = "merge",
        query: Query = None,
        *,
        timeout: float = 30.0,
    ) -> Any:
        """Change parts of an object."""
        content = _FORMS[form]
        said = await self.call("PATCH", path, body, content=content, query=query, timeout=timeout)
        return _decoded(said)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query = None, *, silence: float = 660.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read line by line what the server says, until it has no more to say.

        So many seconds without a byte count as a connection that is dead.
        """
        url = self._url(path, query)
        used = await self._access.proof.credential()
        try:
            response = await self._open(used, url, silence)
        except ApiError as error:
            other = await self._access.proof.renew(used) if error.code == 401 else None
            if other is None:
                raise
            response = await self._open(other, url, silence)
        try:
            yield _guarded(lines(response.content.iter_any()), url)
        finally:
            _break_off(response)

    async def _once(
        self,
        used: Credential,
        method: str,
        url: URL,
        data: bytes | None,
        content: str,
        timeout: float,
    ) -> bytes:
        begun = False
        try:
            async with asyncio.timeout(timeout), self._turns:
                begun = True
                response = await self._send(used, method, url, _patience(timeout), data, content)
                async with response:
                    said = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(method, url, error, begun) from error
        if response.status < 300:
            return said
        raise refusal(response.status, response.headers, said)

    async def _open(self, used: Credential, url: URL, silence: float) -> ClientResponse:
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                patience = ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=silence)
                response = await self._send(used, "GET", url, patience)
                if response.status < 300:
                    return response
                async with response:
                    said = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable("GET", url, error, True) from error
        raise refusal(response.status, response.headers, said)

    async def _send(
        self,
        used: Credential,
        method: str,
        url: URL,
        patience: ClientTimeout,
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
            timeout=patience,
            allow_redirects=False,
            middlewares=_MIDDLEWARES.get(method, ()),
        )

    def _url(self, path: str, query: Query) -> URL:
        if query:
            return URL(f"{self._access.url}{path}?{urlencode(query)}", encoded=True)
        return self._server.with_path(f"{self._server.raw_path.rstrip('/')}{path}", encoded=True)


async def _in_time(awaited: Awaitable[Got], seconds: float) -> Got:
    """What is awaited, unless it takes too long: a request must not be sent after its time."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        raise UnreachableError("there is no credential in time", sent=False) from None


def _left(end: float, now: float) -> float:
    """How many seconds are left; in steps, so that they come again and again."""
    return max(round(end - now, 1), 0.1)


async def _not_twice(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Keep the library from sending a PUT or DELETE again by itself, if a connection breaks."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _unreachable(request.method, request.url, error, True) from error


_MIDDLEWARES = {"PUT": (_not_twice,), "DELETE": (_not_twice,)}


def _decoded(said: bytes) -> Any:
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError as error:
        raise UnreachableError(f"an answer that is not JSON: {error}", sent=True) from None


def _break_off(response: ClientResponse) -> None:
    """Leave a stream at once: to say good-bye to the server would take it, and us, a while."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _guarded(said: AsyncIterator[bytes], url: URL) -> AsyncIterator[bytes]:
    """The same lines, with one kind of error for whatever ends them early."""
    try:
        async for line in said:
            yield line
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable("GET", url, error, True) from error


def _unreachable(method: str, url: URL, error: Exception, begun: bool) -> UnreachableError:
    never = (
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
    )
    why = str(error) or "no answer in time"
    sent = begun and not isinstance(error, never)
    return UnreachableError(f"{method} {url.origin()}{url.path}: {why}", sent=sent)


@lru_cache(maxsize=64)
def _patience(timeout: float) -> ClientTimeout:
    """Connecting is given up a little before all is, so that one can be told from the other."""
    return ClientTimeout(sock_connect=min(_CONNECT_SECONDS, 0.9 * timeout))


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that asks whether the other end is still there, when nothing comes for a while."""
    made = socket.socket(family=address[0], type=address[1], proto=address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
