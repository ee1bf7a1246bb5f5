"""The bind observer: watches pods, and records on one clock when each was first seen bound.

It decodes nothing of a pod but its name and node, so that it uses little CPU: it shares the machine
with the scheduler that is measured.
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
    """By name, when each pod was first seen bound."""

    def __init__(self) -> None:
        self.bound: dict[str, float] = {}
        self.ready = asyncio.Event()
        """Set once the watch has begun."""
        self._changed = asyncio.Event()

    def put(self, found: _Seen) -> None:
        """A pod was added or changed."""
        name = found.metadata.name
        if found.spec.node_name and name not in self.bound:
            self.bound[name] = time.perf_counter()
            self._changed.set()

    def gone(self, name: Name) -> None:
        """A pod was deleted: its bind time stays."""

    def synced(self, resource: Resource) -> None:
        """All existing pods have been listed."""
        self.ready.set()

    async def until(self, count: int, seconds: float) -> bool:
        """Wait until so many pods are bound, or the time is over; are they?"""
        end = time.perf_counter() + seconds
        while len(self.bound) < count and (left := end - time.perf_counter()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        return len(self.bound) >= count

    async def until_any(self, names: set[str], seconds: float) -> float | None:
        """When the first of these pods was bound; None if none was in time. The set may grow."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if found := [self.bound[name] for name in names if name in self.bound]:
                return min(found)
            await asyncio.sleep(0.005)
        return None


@asynccontextmanager
async def observe_binds(client: Client) -> AsyncIterator[BindObserver]:
    """A bind observer for as long as the block lasts; its watch has begun."""
    observer = BindObserver()
    watching = asyncio.create_task(Reflector(client, PODS, _Seen, observer).run())
    try:
        await observer.ready.wait()
        yield observer
    finally:
        watching.cancel()
