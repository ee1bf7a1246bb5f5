"""A witness: watches pods, and notes on one clock when each was first seen bound.

It reads nothing of a pod but its name and its node, so that it takes little from those whom it
watches: they share the machine.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aliquot.dialects.core.objects import Metadata, Wire
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS, Resource
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector


class _Spec(Wire):
    node_name: str | None = None


class _Seen(Wire):
    metadata: Metadata
    spec: _Spec


class BindObserver:
    """Knows who was bound when, by name."""

    def __init__(self) -> None:
        self.bound: dict[str, float] = {}
        self.ready = asyncio.Event()
        """Set when it sees whatever happens from now on."""
        self._news = asyncio.Event()

    def put(self, found: _Seen) -> None:
        """A pod is there, like this."""
        name = found.metadata.name
        if found.spec.node_name and name not in self.bound:
            self.bound[name] = time.perf_counter()
            self._news.set()

    def gone(self, name: Name) -> None:
        """A pod is gone: what was seen of it stays."""

    def synced(self, resource: Resource) -> None:
        """All pods that were there have been seen."""
        self.ready.set()

    async def until(self, count: int, seconds: float) -> bool:
        """Wait until so many have been bound, or for so long; were they?"""
        end = time.perf_counter() + seconds
        while len(self.bound) < count and (left := end - time.perf_counter()) > 0:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                break
        return len(self.bound) >= count

    async def until_any(self, names: set[str], seconds: float) -> float | None:
        """Wait until one of these is bound, or for so long; when it was. Names may be added."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if found := [self.bound[name] for name in names if name in self.bound]:
                return min(found)
            await asyncio.sleep(0.005)
        return None


@asynccontextmanager
async def witness(client: Client) -> AsyncIterator[BindObserver]:
    """Somebody who watches for as long as the block lasts, and has begun to."""
    made = BindObserver()
    watching = asyncio.create_task(Reflector(client, PODS, _Seen, made).run())
    try:
        await made.ready.wait()
        yield made
    finally:
        watching.cancel()
