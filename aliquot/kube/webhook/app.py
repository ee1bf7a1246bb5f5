"""The webhook as a whole: cache, certificate, registration, service, probes.

`async with webhook(client, settings) as app:` starts and stops all of them; a command, a test or
another server in the same process needs no more. An error of any part ends the block.
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
from aliquot.dialects.configuration import Configuration, with_own_namespace
from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.install.installation import CERTIFICATE, CONFIGURATION, NAMESPACE, WEBHOOK
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics_auth import MetricsAuth
from aliquot.kube.observe.probes import Probes
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.cert_files import CertFiles
from aliquot.kube.webhook.cert_secret import CertSecret
from aliquot.kube.webhook.identity import Identity
from aliquot.kube.webhook.listener import WATCHED, reflector
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.registration import Registration
from aliquot.kube.webhook.service import LIMITS, Service
from aliquot.listener import Limits, listening

_GRACE = 5.0
"""Seconds for requests under way when the webhook stops: API servers wait 5 s for an answer."""
_BEAT_SECONDS = 0.25
"""How often the main loop beats and looks whether it is ready: soon enough for a rollout."""
_CACHES = "caches"
"""The check of /readyz that is met when everything has been listed."""
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
    """0: any free port."""
    service: str = WEBHOOK
    secret: str = CERTIFICATE
    registered: str = CONFIGURATION
    """The name of both webhook configurations."""
    url: str | None = None
    """The URL that API servers call in place of the Service; empty: where this one listens."""
    registers: bool = False
    """Write the configurations for the Service, since no installation does?"""
    files: tuple[Path, Path] | None = None
    """A certificate and its key that another program renews."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """The port of probes and metrics; 0: any free port, None: no probes."""
    metrics_access: Access | None = None
    """Serve metrics over TLS, and only to clients whom the API server, asked by this access, allows
    to read them; None: to everyone."""
    limits: Limits = LIMITS
    """How long API servers may take to send a review, and how many connections there may be."""

    @property
    def names(self) -> list[str]:
        """The DNS names by which API servers call the webhook."""
        full = f"{self.service}.{self.namespace}.svc"
        found = [full, f"{full}.cluster.local", f"{self.service}.{self.namespace}"]
        if self.url is not None:
            found.append(urlsplit(self.url).hostname or self.host)
        return found


@dataclass(slots=True)
class WebhookApp:
    """A running webhook."""

    cache: Cache
    service: Service
    metrics: Metrics
    health: Health
    tls: ssl.SSLContext
    registration: Registration
    ready: asyncio.Event
    """Set when everything has been listed and the webhook listens."""
    port: int = 0

    def serve_with(self, pair: Pair) -> None:
        """Serve with this certificate, from the next connection on."""
        pair.load_into(self.tls)
        _, end = certificates.validity(pair.certificate)
        self.metrics.certificate_expiry.set(end.timestamp())

    def use(self, identity: Identity) -> None:
        """Serve with this identity's certificate, and have API servers trust its authority."""
        self.registration.bundle = identity.bundle
        self.serve_with(identity.pair)


@asynccontextmanager
async def webhook(client: Client, settings: Settings) -> AsyncIterator[WebhookApp]:
    """Run a webhook for as long as the block lasts; the block begins before it is ready."""
    app = _assemble(client, settings)
    async with _probes(app, settings) as failed, asyncio.TaskGroup() as group:
        listening = asyncio.Event()
        works = (
            failed,
            _fill_cache(client, app),
            _serve(client, settings, app, listening),
            _beat(app, listening),
        )
        tasks = [group.create_task(each) for each in works]
        try:
            yield app
        finally:
            for task in tasks:
                task.cancel()


def _assemble(client: Client, settings: Settings) -> WebhookApp:
    configuration = with_own_namespace(settings.configuration, settings.namespace)
    cache, metrics, health = Cache(configuration, settings.policy), Metrics(), Health()
    health.expect(_CACHES)
    service = Service(cache, metrics, f"system:serviceaccount:{settings.namespace}:")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    registration = Registration(client, settings.registered)
    return WebhookApp(cache, service, metrics, health, tls, registration, asyncio.Event())


@asynccontextmanager
async def _probes(
    app: WebhookApp, settings: Settings
) -> AsyncIterator[Coroutine[Any, Any, object]]:
    """Run the probes, if they have a port; yields a coroutine that raises if they fail."""
    if settings.health_port is None:
        yield asyncio.Event().wait()
        return
    access = settings.metrics_access
    auth = MetricsAuth(Client(access, connections=2)) if access is not None else None
    where = (settings.health_port, settings.health_host)
    probes = Probes(app.health, app.metrics.registry, *where, auth=auth)
    async with BackgroundLoop(probes.run) as background:
        yield background.failed()


async def _fill_cache(client: Client, app: WebhookApp) -> None:
    """List everything, then watch."""
    synced = {each: asyncio.Event() for each in WATCHED}
    async with asyncio.TaskGroup() as group:
        with paused_collector():
            for resource, complete in synced.items():
                made = reflector(client, app.cache, resource, complete.set)
                group.create_task(made.run())
            for complete in synced.values():
                await complete.wait()
        app.service.ready = True
        _log.info("everything has been read", quotas=len(list(app.cache.quotas)))


async def _serve(
    client: Client, settings: Settings, app: WebhookApp, listening: asyncio.Event
) -> None:
    """Listen as soon as there is a certificate; then keep it up to date."""
    if settings.files is not None:
        cert_files = CertFiles(*settings.files)
        pair = cert_files.pair()
        app.serve_with(pair)
        async with _listening(app, settings), _registered(settings, app):
            listening.set()
            await cert_files.follow(app.serve_with, pair)
    cert_secret = CertSecret(client, settings.namespace, settings.secret, settings.names)
    identity = await cert_secret.identity()
    app.use(identity)
    async with _listening(app, settings), _registered(settings, app):
        listening.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(app.registration.follow())
            group.create_task(cert_secret.follow(app.use, identity))


@asynccontextmanager
async def _registered(settings: Settings, app: WebhookApp) -> AsyncIterator[None]:
    """Register the webhook under its URL, if it has one, or behind its Service.

    If no other process will listen there, it is unregistered at the end: API servers would call an
    address where nothing listens any more.
    """
    if settings.url is None and not settings.registers:
        yield
        return
    own = f"https://{settings.host}:{app.port}"
    url = None if settings.registers else settings.url or own
    await app.registration.register(url, settings.namespace)
    try:
        yield
    finally:
        if not settings.url:
            await app.registration.unregister()


async def _beat(app: WebhookApp, listening: asyncio.Event) -> None:
    """Beat for the liveness probe, and be ready once the webhook is."""
    while True:
        app.health.beat()
        if app.service.ready and listening.is_set():
            app.health.met(_CACHES)
            app.ready.set()
        await asyncio.sleep(_BEAT_SECONDS)


@asynccontextmanager
async def _listening(app: WebhookApp, settings: Settings) -> AsyncIterator[None]:
    runner = web.AppRunner(
        app.service.application(),
        handle_signals=False,
        shutdown_timeout=_GRACE,
    )
    place = (settings.host, settings.port, settings.limits)
    async with listening(runner, *place, app.tls) as app.port:
        _log.info("listening", host=settings.host, port=app.port)
        yield
