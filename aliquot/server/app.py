"""A running server: everything put together, started, and stopped cleanly.

`async with running(Settings(...)) as server:` is all that a test or a command needs.
"""

import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from aliquot.json import Body
from aliquot.server import kubeconfig
from aliquot.server.admission.admission import Admission
from aliquot.server.api import Api
from aliquot.server.bootstrap import bootstrap
from aliquot.server.controllers.all_controllers import controllers
from aliquot.server.credentials import Credentials, credentials
from aliquot.server.http.front import Front
from aliquot.server.http.verbs import Verbs
from aliquot.server.kinds.definitions import follow
from aliquot.server.kinds.registry import Registry
from aliquot.server.storage.log import Log
from aliquot.server.storage.store import Store

_GRACE = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server is to run."""

    data: Path | None = None
    """Where objects are kept; a temporary folder without it."""
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; into the data folder without it."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    controllers: bool = True
    """Do workloads make pods, do owners take theirs along, do nodes run them?"""
    nodes: tuple[Body, ...] = ()
    """Nodes to simulate."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is running."""

    url: str
    kubeconfig: Path
    credentials: Credentials
    api: Api


@asynccontextmanager
async def running(settings: Settings | None = None) -> AsyncIterator[Server]:
    """Run a server for as long as the block lasts."""
    settings = settings or Settings()
    with ExitStack() as stack:
        folder = settings.data
        if folder is None:
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix="aliquot-"))
            folder = Path(made)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = credentials(folder, settings.host)
        store = Store(Log(folder / "objects.sqlite", lasting=settings.data is not None))
        registry = Registry()
        follow(store, registry)
        api = Api(store, registry, Admission(store))
        try:
            await bootstrap(api, settings.nodes)
            moved = controllers(api) if settings.controllers else nullcontext()
            async with moved, _listening(api, known, settings) as port:
                host = f"[{settings.host}]" if ":" in settings.host else settings.host
                url = f"https://{host}:{port}"
                file = settings.kubeconfig or folder / "kubeconfig"
                kubeconfig.write(file, url, known)
                yield Server(url, file, known, api)
        finally:
            await api.admission.close()
            await store.close()


@asynccontextmanager
async def _listening(api: Api, known: Credentials, settings: Settings) -> AsyncIterator[int]:
    door = web.Server(Front(Verbs(api), known.token).handle, access_log=None)
    runner = web.ServerRunner(door, shutdown_timeout=_GRACE)
    await runner.setup()
    try:
        site = web.TCPSite(
            runner, settings.host, settings.port, ssl_context=known.context(), backlog=1024
        )
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
