"""A listener that writes down what it is told, and reflectors that tell it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aliquot.dialects.core.objects import PlainWire
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS, Resource
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Pace, Reflector
from tests.cluster.kube.scripted import Scripted, Step, asking

QUICK = Pace(page=2, watch_seconds=(1, 1), silence_seconds=1.0, absent_seconds=0.2)


class CacheListener:
    """Everything that was told, in order, and what must be there by that."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.there: dict[str, str] = {}
        self.objects: list[Any] = []
        self.in_sync = False

    def put(self, found: Any) -> None:
        metadata = found["metadata"] if isinstance(found, dict) else found.metadata
        name = metadata["name"] if isinstance(metadata, dict) else metadata.name
        uid = metadata["uid"] if isinstance(metadata, dict) else metadata.uid
        assert self.there.get(name, uid) == uid, f"{name}: the one before is not gone"
        self.there[name] = uid
        self.objects.append(found)
        self.words.append(f"+{name}")

    def gone(self, name: Name) -> None:
        assert self.there.pop(name.name) == name.uid
        self.words.append(f"-{name.name}")

    def synced(self, resource: Resource) -> None:
        assert not self.in_sync
        self.in_sync = True
        self.words.append("synced")

    @property
    def said(self) -> str:
        return " ".join(self.words)


@asynccontextmanager
async def reflecting(
    client: Client, resource: Resource = PODS, shape: Any = PlainWire, **settings: Any
) -> AsyncIterator[tuple[CacheListener, Reflector[Any]]]:
    """A reflector at work; it must not have ended by itself."""
    told = CacheListener()
    reflector = Reflector(client, resource, shape, told, **settings)
    task = asyncio.create_task(reflector.run())
    try:
        yield told, reflector
        if task.done():
            task.result()
        assert not task.done(), "a reflector never ends by itself"
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def telling(
    *steps: Step, shape: Any = PlainWire, streaming: bool = False, **settings: Any
) -> AsyncIterator[tuple[CacheListener, Reflector[Any], Scripted]]:
    """A reflector of what a scripted server says: of pages, unless told otherwise."""
    settings = {"streaming": streaming, "pace": QUICK, **settings}
    async with (
        asking(*steps) as (client, script),
        reflecting(client, PODS, shape, **settings) as (told, reflector),
    ):
        yield told, reflector, script
