"""What the server can take, measured: creates, binds, watch events, and a list of 50,000 pods.

Clients and server share the process and its one core of Python, as they do in `aliquot up`; what
clients cost is part of the figures.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator

import aiohttp

from aliquot.cluster.figure import Figure
from aliquot.dialects.documents import Body
from aliquot.server.running import Server, running

_PODS = 50_000
_BINDS = 5_000
_WATCHERS = 10
_AT_ONCE = 64
_PATH = "/api/v1/namespaces/default/pods"


def apiserver(progress: Callable[[str], None]) -> list[Figure]:
    """Create 50,000 pods while ten watch, bind some, and list them all."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> list[Figure]:
    progress("the start of a server")
    begin = time.perf_counter()
    async with running() as server, _session(server) as session:
        started = time.perf_counter() - begin
        watchers = [asyncio.create_task(_watch(server, session)) for _ in range(_WATCHERS)]
        await asyncio.sleep(0.5)
        progress(f"{_PODS} pods created, {_WATCHERS} watching")
        creating = await _timed(_create(server, session, number) for number in range(_PODS))
        progress(f"{_BINDS} pods bound")
        binding = await _timed(_bind(server, session, number) for number in range(_BINDS))
        expected = _PODS + _BINDS
        seen = await asyncio.gather(*watchers)
        progress(f"{_PODS} pods listed")
        listing = min([await _list(server, session) for _ in range(3)])
        lost = sum(expected - count for count, _ in seen)
        span = max(end for _, end in seen) - (begin + started)
    return [
        Figure("until a server answers", started, "s", "<= 1"),
        Figure("pods created", _PODS / creating, "pods/s"),
        Figure("pods bound", _BINDS / binding, "pods/s"),
        Figure("events told to ten watchers together", expected * _WATCHERS / span, "events/s"),
        Figure("events lost by any of them", lost, "events", "<= 0"),
        Figure(f"{_PODS:,} pods listed", listing, "s", "<= 5"),
    ]


def _session(server: Server) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=str(server.credentials.authority))
    connector = aiohttp.TCPConnector(ssl=context, limit=_AT_ONCE + _WATCHERS)
    headers = {"Authorization": f"Bearer {server.credentials.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)


async def _timed(work: Iterator[Awaitable[None]]) -> float:
    """Do it all, so many at a time."""

    async def worker() -> None:
        for each in work:
            await each

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    return time.perf_counter() - begin


async def _create(server: Server, session: aiohttp.ClientSession, number: int) -> None:
    async with session.post(server.url + _PATH, json=_pod(number)) as answer:
        await answer.read()
        answer.raise_for_status()


async def _bind(server: Server, session: aiohttp.ClientSession, number: int) -> None:
    body = {"target": {"kind": "Node", "name": f"node-{number % 1000}"}}
    url = f"{server.url}{_PATH}/pod-{number}/binding"
    async with session.post(url, json=body) as answer:
        await answer.read()
        answer.raise_for_status()


async def _list(server: Server, session: aiohttp.ClientSession) -> float:
    begin = time.perf_counter()
    async with session.get(server.url + _PATH) as answer:
        content = await answer.read()
    took = time.perf_counter() - begin
    assert len(json.loads(content)["items"]) == _PODS
    return took


async def _watch(server: Server, session: aiohttp.ClientSession) -> tuple[int, float]:
    """How many events came, and when the last did."""
    count, end = 0, time.perf_counter()
    url = f"{server.url}{_PATH}?watch=1&timeoutSeconds=600"
    async with session.get(url) as answer:
        async for chunk in answer.content.iter_any():
            count, end = count + chunk.count(b"\n"), time.perf_counter()
            if count >= _PODS + _BINDS:
                break
    return count, end


def _pod(number: int) -> Body:
    return {
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"app-{number % 100}"}},
        "spec": {
            "schedulerName": "aliquot",
            "containers": [
                {
                    "name": "main",
                    "image": "train",
                    "resources": {
                        "requests": {"cpu": "4", "memory": "8Gi"},
                        "limits": {"nvidia.com/gpu": "1"},
                    },
                }
            ],
        },
    }
