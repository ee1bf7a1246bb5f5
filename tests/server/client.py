"""A small client for tests: one server, one connection pool, plain data in and out."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from aliquot.server.app import Server, Settings, running
from aliquot.sockets import Sockets

Answer = tuple[int, Any]
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Speaks to a server with its token."""

    def __init__(self, url: str, token: str, session: aiohttp.ClientSession) -> None:
        self.url, self.token, self.session = url, token, session

    async def call(
        self, method: str, path: str, body: Any = None, form: str = "application/json", **query: str
    ) -> Answer:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": form}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        request = self.session.request(
            method, self.url + path, data=data, params=query, headers=headers
        )
        async with request as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    async def get(self, path: str, **query: str) -> Answer:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("PUT", path, body, **query)

    async def merge(self, path: str, body: Any) -> Answer:
        return await self.call("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, body: Any = None, **query: str) -> Answer:
        return await self.call("DELETE", path, body, **query)

    async def watch(self, path: str, **query: str) -> AsyncIterator[dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self.token}"}
        params = {"watch": "1", **query}
        timeout = aiohttp.ClientTimeout(total=None)
        request = self.session.get(self.url + path, params=params, headers=headers, timeout=timeout)
        async with request as answer:
            assert answer.status == 200
            async for line in answer.content:
                yield json.loads(line)

    async def until(self, path: str, ready: Any, seconds: float = 60.0) -> Any:
        """Ask again and again until an object is as it should be."""
        last = None
        for _ in range(int(seconds / 0.05)):
            code, last = await self.get(path)
            if ready(code, last):
                return last
            await asyncio.sleep(0.05)
        raise AssertionError(f"{path} is not as it should be: {last}")


@asynccontextmanager
async def served(settings: Settings | None = None) -> AsyncIterator[Client]:
    """A server, and a client of it."""
    async with running(settings) as server, connected(server) as client:
        yield client


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Client]:
    async with speaking(server.url, server.credentials.authority, server.credentials.token) as one:
        yield one


@asynccontextmanager
async def speaking(url: str, authority: Path, token: str) -> AsyncIterator[Client]:
    context = ssl.create_default_context(cafile=str(authority))
    sockets = Sockets()
    connector = aiohttp.TCPConnector(ssl=context, limit=200, socket_factory=sockets.make)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(url, token, session)
    finally:
        await sockets.close()


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}
