"""The webhook, put together: caches, certificate, registration, service; started, and stopped.

`async with webhook(client, settings) as running:` is all that a command, a test or another server
in the same process needs. What it fails with ends the block.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from aliquot import certificates
from aliquot.certificates import Pair
from aliquot.collector import paused_collector
from aliquot.dialects.configuration import Configuration
from aliquot.kube.api.client import Client
from aliquot.kube.install.installation import CERTIFICATE, CONFIGURATION, NAMESPACE, WEBHOOK
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.probes import Probes
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.cert_files import CertFiles
from aliquot.kube.webhook.cert_secret import CertSecret
from aliquot.kube.webhook.identity import Identity
from aliquot.kube.webhook.listener import WATCHED, reflector
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.registration import Registration
from aliquot.kube.webhook.service import Service

_GRACE = 5.0
_BEAT_SECONDS = 0.25
_READY = "caches"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a webhook is to run."""

    configuration: Configuration = field(default_factory=Configuration)
    policy: str | None = None
    """Overrides the configuration."""
    namespace: str = NAMESPACE
    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    service: str = WEBHOOK
    secret: str = CERTIFICATE
    registered: str = CONFIGURATION
    """The name of both webhook configurations."""
    url: str | None = None
    """Where API servers are to ask, if not by the Service; empty: where this one listens."""
    files: tuple[Path, Path] | None = None
    """A certificate and its key that somebody else looks after."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """Where probes and metrics are answered; 0: any that is free, None: nowhere."""

    @property
    def names(self) -> list[str]:
        """What API servers may call the webhook."""
        full = f"{self.service}.{self.namespace}.svc"
        found = [full, f"{full}.cluster.local", f"{self.service}.{self.namespace}"]
        if self.url is not None:
            found.append(urlsplit(self.url).hostname or self.host)
        return found


@dataclass(slots=True)
class Running:
    """A webhook that is running."""

    live: Cache
    service: Service
    metrics: Metrics
    health: Health
    tls: ssl.SSLContext
    registration: Registration
    ready: asyncio.Event
    """Set when everything has been read, and API servers can ask."""
    port: int = 0

    def show(self, pair: Pair) -> None:
        """Prove who we are by this pair, from the next connection on."""
        pair.load_into(self.tls)
        _, end = certificates.validity(pair.certificate)
        self.metrics.certificate_expiry.set(end.timestamp())

    def use(self, identity: Identity) -> None:
        """The same, and have API servers trust who vouches for it."""
        self.registration.bundle = identity.bundle
        self.show(identity.pair)


@asynccontextmanager
async def webhook(client: Client, settings: Settings) -> AsyncIterator[Running]:
    """Run a webhook for as long as the block lasts; the block begins before it is ready."""
    running = _put_together(client, settings)
    async with _probes(running, settings) as failed, asyncio.TaskGroup() as group:
        listening = asyncio.Event()
        works = (
            failed,
            _read_all(client, running),
            _serve(client, settings, running, listening),
            _follow(running, listening),
        )
        tasks = [group.create_task(each) for each in works]
        try:
            yield running
        finally:
            for task in tasks:
                task.cancel()


def _put_together(client: Client, settings: Settings) -> Running:
    live, metrics, health = Cache(settings.configuration, settings.policy), Metrics(), Health()
    health.expect(_READY)
    service = Service(live, metrics, f"system:serviceaccount:{settings.namespace}:")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    registration = Registration(client, settings.registered)
    return Running(live, service, metrics, health, tls, registration, asyncio.Event())


@asynccontextmanager
async def _probes(
    running: Running, settings: Settings
) -> AsyncIterator[Coroutine[Any, Any, object]]:
    """Answer probes, if anywhere; yields what waits for them to fail."""
    if settings.health_port is None:
        yield asyncio.Event().wait()
        return
    probes = Probes(
        running.health, running.metrics.registry, settings.health_port, settings.health_host
    )
    async with BackgroundLoop(probes.run) as side:
        yield side.failed()


async def _read_all(client: Client, running: Running) -> None:
    """Read everything, then follow what changes."""
    waited_for = {each: asyncio.Event() for each in WATCHED}
    async with asyncio.TaskGroup() as group:
        with paused_collector():
            for resource, complete in waited_for.items():
                made = reflector(client, running.live, resource, complete.set)
                group.create_task(made.run())
            for complete in waited_for.values():
                await complete.wait()
        running.service.ready = True
        _log.info("everything has been read", quotas=len(running.live.shares))


async def _serve(
    client: Client, settings: Settings, running: Running, listening: asyncio.Event
) -> None:
    """Listen, as soon as there is a certificate to show; then look after it."""
    if settings.files is not None:
        given = CertFiles(*settings.files)
        pair = given.pair()
        running.show(pair)
        async with _listening(running, settings), _registered(settings, running):
            listening.set()
            await given.follow(running.show, pair)
    keeper = CertSecret(client, settings.namespace, settings.secret, settings.names)
    identity = await keeper.identity()
    running.use(identity)
    async with _listening(running, settings), _registered(settings, running):
        listening.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(running.registration.follow())
            group.create_task(keeper.follow(running.use, identity))


@asynccontextmanager
async def _registered(settings: Settings, running: Running) -> AsyncIterator[None]:
    """Be asked at the address that is given.

    Where that is our own, nobody will ever answer there again: who asks must be told of the end.
    """
    if settings.url is None:
        yield
        return
    own = f"https://{settings.host}:{running.port}"
    await running.registration.register(settings.url or own, settings.namespace)
    try:
        yield
    finally:
        if not settings.url:
            await running.registration.unregister()


async def _follow(running: Running, listening: asyncio.Event) -> None:
    """Keep what others are told about us up to date."""
    while True:
        running.health.beat()
        if running.service.ready and listening.is_set():
            running.health.met(_READY)
            running.ready.set()
        await asyncio.sleep(_BEAT_SECONDS)


@asynccontextmanager
async def _listening(running: Running, settings: Settings) -> AsyncIterator[None]:
    runner = web.AppRunner(
        running.service.application(),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=_GRACE,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.host, settings.port, ssl_context=running.tls).start()
        running.port = int(runner.addresses[0][1])
        _log.info("listening", host=settings.host, port=running.port)
        yield
    finally:
        await runner.cleanup()
