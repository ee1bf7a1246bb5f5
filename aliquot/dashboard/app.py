"""The server of the page: files, the stream of frames, and answers to single questions.

It only reads. Whatever a request says, nothing is written to the cluster; `what-if` asks an engine.
A browser must not be a way around the network: on this machine only requests that name it as their
host are answered, a request from another page is refused, and the page may load nothing but itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from errno import EADDRINUSE
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Protocol

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from aliquot.dashboard.access import EVERYTHING, KEPT_SECONDS, Access, RefusedError, Rights
from aliquot.dashboard.board import Frame, Headline
from aliquot.dashboard.stream import Stream
from aliquot.dashboard.watched import Watched
from aliquot.errors import AliquotError, InputError
from aliquot.listener import BodyError, Limits, listening, read_body

LIMITS = Limits(connections=512, body_bytes=256 * 2**10)
"""Some hundred open pages; a what-if names a few quotas."""
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
_FOREIGN = ("cross-site", "same-site")

Answer = dict[str, Any]


class Oracle(Protocol):
    """Answers what takes an engine of its own: as `aliquot explain` and `aliquot what-if` do."""

    async def explain(self, pod: str) -> Answer:
        """Why a pod waits, or what it has."""
        ...

    async def what_if(self, change: Answer) -> Answer:
        """What would happen if bounds of quotas were these, and there were more nodes."""
        ...


class Source(Protocol):
    """A cluster to show: live or from files."""

    watched: Watched | None

    @property
    def notice(self) -> str:
        """What the page says while not everything has been read."""
        ...

    def clock(self) -> int:
        """The time, in nanoseconds."""
        ...


class Dashboard:
    """The server, for one source; `access` is None where everything may be seen."""

    def __init__(
        self, source: Source, oracle: Oracle, host: str, access: Access | None = None
    ) -> None:
        self._source = source
        self._oracle = oracle
        self._host = host
        self._access = access
        self._stream = Stream(self._watched, source.clock, lambda: source.notice)
        self._files = _page_files()

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[int]:
        """Serve for as long as the block lasts; yields the port."""
        runner = web.AppRunner(self._application(), handle_signals=False, shutdown_timeout=0.5)
        try:
            async with listening(runner, self._host, port, LIMITS) as found:
                telling = asyncio.create_task(self._stream.run())
                try:
                    yield found
                finally:
                    telling.cancel()
        except OSError as error:
            problem = "address already in use" if error.errno == EADDRINUSE else str(error)
            raise InputError("dashboard", f"port {port}", problem) from error

    def _watched(self) -> Watched | None:
        return self._source.watched

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", self._file),
                web.get("/{name:[a-z_.]+}", self._file),
                web.get("/api/stream", self._frames),
                web.get("/api/quota", self._quota),
                web.get("/api/node", self._node),
                web.get("/api/history", self._history),
                web.get("/api/explain", self._explain),
                web.post("/api/what-if", self._what_if),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what no page of ours asks, and add the headers that keep the page to itself."""
        try:
            self._check_origin(request)
            response = await handler(request)
        except RefusedError as error:
            response = web.Response(status=error.status, text=f"{error}\n")
        except BodyError as error:
            response = web.Response(status=error.code, text=f"{error}\n")
        except AliquotError as error:
            response = web.Response(status=HTTPStatus.UNPROCESSABLE_ENTITY, text=f"{error}\n")
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _check_origin(self, request: web.Request) -> None:
        host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
        if self._host in _LOOPBACK and host not in _LOOPBACK:
            problem = f"this page is served as localhost, not as {host!r:.100}"
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, problem)
        foreign = request.headers.get("Sec-Fetch-Site") in _FOREIGN
        if foreign and request.path.startswith("/api/"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "only this page itself may ask")

    async def _rights(self, request: web.Request) -> Rights:
        if self._access is None:
            return EVERYTHING
        return await self._access.rights(request.headers.get("Authorization", ""))

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        if name not in self._files:
            return web.Response(status=HTTPStatus.NOT_FOUND, text=f"there is no {name}\n")
        kind = _TYPES[name.rpartition(".")[2]]
        return web.Response(body=self._files[name], content_type=kind, charset="utf-8")

    async def _frames(self, request: web.Request) -> web.StreamResponse:
        """All rows, then what changes; ended when the rights of the token are to be asked anew."""
        rights = await self._rights(request)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        until = None if self._access is None else KEPT_SECONDS
        with self._stream.reader() as reader:
            if self._source.watched is None:
                await response.write(_waiting(self._source.notice))
            try:
                async with asyncio.timeout(until):
                    async for frame in reader.read():
                        await response.write(limited(frame, rights).encoded())
            except (TimeoutError, ConnectionResetError):
                pass  # the page asks again, with rights that are asked anew; or is closed
        return response

    async def _quota(self, request: web.Request) -> web.Response:
        rights, name = await self._rights(request), request.query.get("name", "")
        if not rights.shows_name(name):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"this token may not see quota {name}")
        found = self._ready().quota(name, self._source.clock())
        if found is not None:
            found["pods"] = [each for each in found["pods"] if rights.shows_name(each["pod"])]
        return _found(found, f"quota {name}")

    async def _node(self, request: web.Request) -> web.Response:
        rights, name = await self._rights(request), request.query.get("name", "")
        if not rights.nodes:
            raise RefusedError(HTTPStatus.FORBIDDEN, "this token may not list nodes")
        found = self._ready().node(name)
        if found is not None:
            found["pods"] = [each for each in found["pods"] if rights.shows_name(each["pod"])]
        return _found(found, f"node {name}")

    async def _history(self, request: web.Request) -> web.Response:
        rights = await self._rights(request)
        found = self._ready().history.all()
        quotas = found["quotas"].items()
        found["quotas"] = {name: used for name, used in quotas if rights.shows_name(name)}
        return _json(found)

    async def _explain(self, request: web.Request) -> web.Response:
        rights, pod = await self._rights(request), request.query.get("pod", "")
        if not rights.shows_name(pod):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"this token may not see pod {pod}")
        found = await self._oracle.explain(pod)
        if not rights.everything:
            found = {**found, "preemption": None, "cures": None}  # they name pods of others
        return _json(found)

    async def _what_if(self, request: web.Request) -> web.Response:
        rights = await self._rights(request)
        if not rights.everything:
            problem = "what-if names pods of all teams: this token may not list all pods and nodes"
            raise RefusedError(HTTPStatus.FORBIDDEN, problem)
        try:
            change = msgspec.json.decode(await read_body(request, LIMITS), type=Answer)
        except msgspec.MsgspecError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"the change is no JSON: {error}") from None
        return _json(await self._oracle.what_if(change))

    def _ready(self) -> Watched:
        watched = self._source.watched
        if watched is None:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, self._source.notice)
        return watched


def limited(frame: Frame, rights: Rights) -> Frame:
    """What of a frame may be shown."""
    if rights.everything:
        return frame
    return frame.only(rights.shows, rights.shows_name)


def _waiting(notice: str) -> bytes:
    """What is told before everything has been read."""
    return Frame({}, [], Headline(notice or "Reading ...", "?", notice=notice)).encoded()


def _found(body: Answer | None, what: str) -> web.Response:
    if body is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {what}")
    return _json(body)


def _json(body: Answer) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _page_files() -> dict[str, bytes]:
    """The files of the page, read once: they are small, and part of the package."""
    folder = files("aliquot.dashboard").joinpath("page")
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
