"""The embedded API server, measured: creates, binds, watch events, and a list of 50,000 pods.

The server is a process of its own, started as a user starts it; all clients share another.
"""

import asyncio
import base64
import json
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from aliquot.bench.envtest import embedded
from aliquot.bench.figure import Figure
from aliquot.json import Body

_PODS = 50_000
"""As many as the largest cluster of the budgets has."""
_BINDS = 5_000
"""A tenth of the pods: enough for a steady rate."""
_WATCHERS = 10
_AT_ONCE = 64
"""Concurrent requests: enough to keep the server busy from one client process."""
_PATH = "/api/v1/namespaces/default/pods"


def apiserver(progress: Callable[[str], None]) -> list[Figure]:
    """Create 50,000 pods while ten watch, bind some, and list them all."""
    progress("the start of a server")
    begin = time.perf_counter()
    with _started() as server:
        started = Figure(
            "until a server answers, Python itself included", time.perf_counter() - begin, "s"
        )
        return [started, *asyncio.run(_measure(server, progress))]


async def _measure(server: "_Server", progress: Callable[[str], None]) -> list[Figure]:
    begin = time.perf_counter()
    async with _session(server) as session:
        seen = [0] * _WATCHERS
        watchers = [
            asyncio.create_task(_watch(server, session, seen, each)) for each in range(_WATCHERS)
        ]
        await asyncio.sleep(0.5)
        progress(f"{_PODS} pods created, {_WATCHERS} watching")
        creating = await _timed(_create(server, session, number) for number in range(_PODS))
        await _caught_up(seen)
        progress(f"{_BINDS} pods bound")
        binding = await _timed(_bind(server, session, number) for number in range(_BINDS))
        expected = _PODS + _BINDS
        ends = await asyncio.gather(*watchers)
        progress(f"{_PODS} pods listed")
        listing = min([await _list(server, session) for _ in range(3)])
        lost = sum(expected - count for count in seen)
        span = max(ends) - begin
    return [
        Figure("pods created", _PODS / creating, "pods/s"),
        Figure("pods bound", _BINDS / binding, "pods/s"),
        Figure("events told to ten watchers together", expected * _WATCHERS / span, "events/s"),
        Figure("events lost by any of them", lost, "events", "<= 0"),
        Figure(f"{_PODS:,} pods listed", listing, "s", "<= 5"),
    ]


@dataclass(frozen=True, slots=True)
class _Server:
    """The URL of a server, its certificate authority and a token."""

    url: str
    authority: str
    token: str


@contextmanager
def _started() -> Iterator[_Server]:
    with (
        tempfile.TemporaryDirectory(prefix="aliquot-") as folder,
        embedded(Path(folder), keep=False) as server,
    ):
        written = yaml.safe_load(server.kubeconfig.read_text())
        cluster = written["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        yield _Server(cluster["server"], authority, written["users"][0]["user"]["token"])


def _session(server: _Server) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cadata=server.authority)
    connector = aiohttp.TCPConnector(ssl=context, limit=_AT_ONCE + _WATCHERS)
    headers = {"Authorization": f"Bearer {server.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)


async def _timed(work: Iterator[Awaitable[None]]) -> float:
    """The seconds that all of it takes, `_AT_ONCE` at a time."""

    async def worker() -> None:
        for each in work:
            await each

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    return time.perf_counter() - begin


async def _create(server: _Server, session: aiohttp.ClientSession, number: int) -> None:
    async with session.post(server.url + _PATH, json=_pod(number)) as response:
        await response.read()
        response.raise_for_status()


async def _bind(server: _Server, session: aiohttp.ClientSession, number: int) -> None:
    body = {"target": {"kind": "Node", "name": f"node-{number % 1000}"}}
    url = f"{server.url}{_PATH}/pod-{number}/binding"
    async with session.post(url, json=body) as response:
        await response.read()
        response.raise_for_status()


async def _list(server: _Server, session: aiohttp.ClientSession) -> float:
    begin = time.perf_counter()
    async with session.get(server.url + _PATH) as response:
        content = await response.read()
    took = time.perf_counter() - begin
    assert len(json.loads(content)["items"]) == _PODS
    return took


async def _watch(
    server: _Server, session: aiohttp.ClientSession, seen: list[int], place: int
) -> float:
    """Count the events of a watch; the time of the last one."""
    url = f"{server.url}{_PATH}?watch=1&timeoutSeconds=600"
    async with session.get(url) as response:
        async for chunk in response.content.iter_any():
            seen[place] += chunk.count(b"\n")
            if seen[place] >= _PODS + _BINDS:
                break
    return time.perf_counter()


async def _caught_up(seen: list[int]) -> None:
    """Wait until all watches have every event, so that they do not slow the next measurement."""
    while min(seen) < _PODS:
        await asyncio.sleep(0.05)


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
