"""The page as a whole: a source, its server, and who may see what, for as long as a block lasts.

async with dashboard_of(find_access, settings) as port: ...
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from aliquot.collector import paused_collector
from aliquot.dashboard.access import Access
from aliquot.dashboard.app import Dashboard, Oracle
from aliquot.dashboard.observer import Observer
from aliquot.dashboard.still import Still
from aliquot.dialects.configuration import Configuration
from aliquot.kube.api.access import Access as Server
from aliquot.kube.api.client import Client
from aliquot.questions.sources.reach import Reach
from aliquot.questions.sources.source import Source

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Settings:
    """How the page is to be served."""

    configuration: Configuration = field(default_factory=Configuration)
    policy: str | None = None
    namespace: str = field(default_factory=lambda: Reach().namespace)
    """Where the control plane runs, whose decision log tells what was decided before."""
    host: str = "127.0.0.1"
    port: int = 0
    protected: bool = False
    """Does a page show what the token that it sends may list? Else it shows everything."""


@contextlib.asynccontextmanager
async def dashboard_of(
    find_access: Callable[[], Server], settings: Settings, oracle: Oracle
) -> AsyncIterator[int]:
    """Serve the page of a live cluster; yields the port."""
    found = find_access()
    async with Client(found, connections=8) as client:
        observer = Observer(
            client, settings.configuration, settings.policy, found.url, settings.namespace
        )
        access = Access(client, observer.namespaces) if settings.protected else None
        page = Dashboard(observer, oracle, settings.host, access)
        async with page.serving(settings.port) as port, asyncio.TaskGroup() as group:
            tasks = [group.create_task(observer.run()), group.create_task(_fill(observer))]
            try:
                yield port
            finally:
                for task in tasks:
                    task.cancel()


@contextlib.asynccontextmanager
async def dashboard_of_files(
    source: Source, settings: Settings, oracle: Oracle
) -> AsyncIterator[int]:
    """Serve the page of a dump, a snapshot or manifests; yields the port."""
    page = Dashboard(Still(source), oracle, settings.host)
    async with page.serving(settings.port) as port:
        yield port


async def _fill(observer: Observer) -> None:
    """Until everything has been listed, the garbage collector is off."""
    with paused_collector():
        while observer.watched is None:
            await asyncio.sleep(_POLL_SECONDS)
