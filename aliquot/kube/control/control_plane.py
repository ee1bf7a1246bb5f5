"""The control plane, put together: caches, scheduler, operator, election, probes; started, stopped.

    async with control_plane(access, settings) as plane: ...

is all that a command or a test needs. The election and the probes are in a thread of their own.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial

from aliquot.collector import paused_collector
from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.control import scheduler
from aliquot.kube.control.operator import Operator
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.control.sharing_mode import one_policy
from aliquot.kube.control.writer import Writer
from aliquot.kube.leader.leader_election import Election
from aliquot.kube.leader.leader_rules import Timing
from aliquot.kube.observe.audit import Audit
from aliquot.kube.observe.background_loop import BackgroundLoop, Work
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.probes import Probes

_CAUGHT_UP = "caches"
_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a control plane is to run."""

    scheduler: scheduler.Settings
    namespace: str = "aliquot-system"
    lease: str | None = "aliquot-scheduler"
    """The name of the Lease that decides who leads; None: this one does, whoever else there is."""
    timing: Timing = field(default_factory=Timing)
    host: str = "127.0.0.1"
    health_port: int | None = None
    """Where probes and metrics are answered; 0: any that is free, None: nowhere."""
    at_once: int = 32
    """How many writes are under way at a time."""
    audit_seconds: float = 30.0


@dataclass(slots=True)
class Plane:
    """A control plane that is running."""

    scheduler: Scheduler
    writer: Writer
    metrics: Metrics
    health: Health
    election: Election | None
    probes: Probes | None

    def leads(self) -> bool:
        """May it write?"""
        return self.election is None or self.election.holds()

    async def follow(self) -> None:
        """Keep the metrics up to date."""
        view, restarts = self.scheduler.view, dict[str, int]()
        while True:
            self.metrics.leader.set(self.leads())
            self.metrics.writes_waiting.set(self.writer.waiting)
            for resource, reflector in view.reflectors.items():
                word, known = resource.full_name, len(reflector)
                self.metrics.cache_objects.labels(word).set(known)
                more = reflector.restarts - restarts.get(word, 0)
                self.metrics.watch_restarts.labels(word).inc(max(more, 0))
                restarts[word] = reflector.restarts
            await asyncio.sleep(_LOOK)


@contextlib.asynccontextmanager
async def control_plane(reach: Callable[[], Access], settings: Settings) -> AsyncIterator[Plane]:
    """Run a control plane for as long as the block lasts.

    `reach` says how to reach the cluster; it is asked for each thread. What the control plane fails
    with ends the block.
    """
    one_policy(settings.scheduler.configuration)
    async with Client(reach(), connections=settings.at_once) as client:
        own = Client(reach(), connections=2)
        plane = _put_together(client, own, settings)
        async with BackgroundLoop(*_beside(plane, own)) as side, asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in _work(plane, client, side, settings)]
            try:
                yield plane
            finally:
                await plane.writer.stop()  # whoever leads next must see all that was written
                for task in tasks:
                    task.cancel()


def _put_together(client: Client, own: Client, settings: Settings) -> Plane:
    metrics, health = Metrics(), Health()
    health.expect(_CAUGHT_UP)
    loop, wakes = asyncio.get_running_loop(), list[Callable[[], None]]()

    def wake() -> None:
        """The election has another outcome; it is told in another thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for each in wakes:
                loop.call_soon_threadsafe(each)

    election = None
    if settings.lease is not None:
        where = (settings.namespace, settings.lease)
        election = Election(own, *where, on_won=wake, on_lost=wake, timing=settings.timing)
    leads = election.holds if election is not None else _always
    writer = Writer(leads, settings.at_once, partial(_observe, metrics))
    made = Scheduler(client, settings.scheduler, leads, writer, metrics, health.beat)
    wakes.append(made.wake)
    probes = None
    if settings.health_port is not None:
        probes = Probes(health, metrics.registry, settings.health_port, settings.host)
    return Plane(made, writer, metrics, health, election, probes)


def _beside(plane: Plane, own: Client) -> Iterator[Work]:
    """What the other thread does."""
    election = plane.election
    if election is not None:

        async def elect() -> None:
            async with own:
                await election.run()

        yield elect
    if plane.probes is not None:
        yield plane.probes.run


def _work(
    plane: Plane, client: Client, side: BackgroundLoop, settings: Settings
) -> Iterator[Coroutine[None, None, None]]:
    """What the main loop does."""
    made = plane.scheduler
    yield side.failed()
    yield _filled(plane)
    yield made.view.run()
    yield plane.writer.run()
    yield made.run()
    yield plane.follow()
    if not settings.scheduler.dry_run:
        yield Operator(client, plane.writer, made, plane.metrics).run()
    yield Audit(made, plane.metrics, plane.health).run(settings.audit_seconds)


async def _filled(plane: Plane) -> None:
    """Keep the garbage collector out until everything has been read; then say that it has."""
    with paused_collector():
        while not plane.scheduler.view.ready:
            await asyncio.sleep(0.05)
    plane.health.met(_CAUGHT_UP)


def _always() -> bool:
    return True


def _observe(metrics: Metrics, word: str, result: str, seconds: float) -> None:
    metrics.writes.labels(word, result).inc()
    metrics.write_duration.labels(word).observe(seconds)
