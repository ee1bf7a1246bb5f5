"""A server that says what a test tells it to: for what no proper server does on command.

Requests are answered step by step in the order in which they come; the last step answers all that
follow.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web
from multidict import CIMultiDict

from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.api.credential import (
    Credential,
    CredentialSource,
    StaticCredential,
    with_token,
)

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = dict[str, Any]


class Scripted:
    """What was asked, and where to ask."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.url = ""
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self._steps = steps

    @property
    def queries(self) -> list[Mapping[str, str]]:
        """What was asked for, request by request."""
        return [request.query for request in self.asked]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        step = self._steps[min(len(self.asked), len(self._steps) - 1)]
        self.asked.append(request)
        self.bodies.append(await request.read())
        return await step(request)


@asynccontextmanager
async def scripted(*steps: Step, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    """The server, on the loopback interface."""
    script = Scripted(steps)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    script.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield script
    finally:
        await runner.cleanup()


@asynccontextmanager
async def asking(
    *steps: Step, credentials: CredentialSource | None = None, connections: int = 32
) -> AsyncIterator[tuple[Client, Scripted]]:
    """The server, and a client of it."""
    async with scripted(*steps) as script:
        token = StaticCredential(Credential(with_token(CIMultiDict(), "a-token"), None))
        async with Client(Access(script.url, credentials or token), connections) as client:
            yield client, script


def says(body: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Step:
    """A whole answer at once."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def step(request: web.Request) -> web.StreamResponse:
        return web.Response(body=text, status=code, headers=headers)

    return step


def refuses(code: int, reason: str = "", **headers: str) -> Step:
    """A Status that says no."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return says(status(code, reason), code, named)


def streams(*chunks: bytes, then: Literal["end", "hang", "cut"] = "end") -> Step:
    """Chunk after chunk, and then an end, silence, or a connection that breaks."""

    async def step(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)
        if then == "hang":
            await asyncio.sleep(3600)
        if then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response

    return step


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """No answer: the connection breaks."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hangs(request: web.Request) -> web.StreamResponse:
    """No answer, ever."""
    await asyncio.sleep(3600)
    return web.Response()


def status(code: int, reason: str = "", **details: Any) -> Body:
    """A Status that says no."""
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return {**said, "reason": reason, "message": f"no: {code}", "details": details}


def thing(name: str, version: int = 1, uid: str = "", **fields: Any) -> Body:
    """An object."""
    about = {"name": name, "namespace": "ns", "uid": uid or f"uid-of-{name}"}
    return {"metadata": {**about, "resourceVersion": str(version)}, **fields}


def page(*items: Any, version: int = 1, rest: str = "") -> Step:
    """Some objects of a list."""
    metadata = {"resourceVersion": str(version), **({"continue": rest} if rest else {})}
    return says({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": list(items)})


def event(type_: str, body: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type_, "object": body}, separators=(",", ":")).encode() + b"\n"


def mark(version: int, complete: bool = False) -> bytes:
    """A bookmark, with the emptiness that real ones have."""
    notes = {"annotations": {"k8s.io/initial-events-end": "true"}} if complete else {}
    metadata = {"resourceVersion": str(version), "creationTimestamp": None, **notes}
    return event("BOOKMARK", {"metadata": metadata, "spec": {"containers": None}, "status": {}})
