"""The control plane as a whole: intake, scheduler, writer, operator, audit, election, probes.

    async with control_plane(find_access, settings) as plane: ...

starts all of them, and stops them in the right order; a command or a test needs no more. The
election and the probes run in the background loop, everything else in the main loop.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from aliquot.collector import paused_collector
from aliquot.dialects.configuration import with_own_namespace
from aliquot.engine import Decision
from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import LEASES, NAMESPACES
from aliquot.kube.control.brake_report import BrakeReport
from aliquot.kube.control.operator import Operator
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.control.scheduler import Settings as SchedulerSettings
from aliquot.kube.execution.events import InvolvedObject
from aliquot.kube.execution.writer import Writer
from aliquot.kube.intake.sharing_mode import one_policy
from aliquot.kube.leader.leader_election import Election
from aliquot.kube.leader.leader_rules import Timing
from aliquot.kube.observe.audit import Audit
from aliquot.kube.observe.background_loop import BackgroundLoop, Work
from aliquot.kube.observe.decision_log import Bounds, DecisionLog
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_auth import MetricsAuth
from aliquot.kube.observe.probes import LIMITS, Probes

_CACHES = "caches"
"""The check of /readyz that is met when everything has been listed."""
_CACHES_POLL = 0.05
_METRICS_SECONDS = 1.0
"""How often gauges are set: far more often than Prometheus scrapes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a control plane is to run."""

    scheduler: SchedulerSettings
    namespace: str = "aliquot-system"
    lease: str | None = "aliquot-scheduler"
    """The name of the Lease for leader election; None: this replica always leads."""
    timing: Timing = field(default_factory=Timing)
    host: str = "127.0.0.1"
    health_port: int | None = None
    """The port of probes and metrics; 0: any free port, None: no probes."""
    metrics_auth: bool = False
    """Serve metrics over TLS, and only to clients whom the API server allows to read them?"""
    at_once: int = 32
    """How many writes are under way at a time, each on a connection of its own."""
    audit_seconds: float = 30.0
    """Seconds between two audits of the ledger."""
    log_bounds: Bounds = field(default_factory=Bounds)
    """How much of the decision log is kept."""
    log_folder: Path | None = None
    """Where the decision log is kept besides memory."""


@dataclass(slots=True)
class ControlPlane:
    """A running control plane."""

    scheduler: Scheduler
    writer: Writer
    metrics: Metrics
    health: Health
    election: Election | None
    probes: Probes | None
    brake_report: BrakeReport
    decision_log: DecisionLog

    def leads(self) -> bool:
        """May this replica write?"""
        return self.election is None or self.election.holds()

    async def update_metrics(self) -> None:
        """Set gauges until cancelled."""
        intake, restarts = self.scheduler.intake, dict[str, int]()
        while True:
            self.metrics.leader.set(self.leads())
            self.metrics.writes_waiting.set(self.writer.waiting)
            self.brake_report.refresh(self.scheduler.clock())
            for resource, reflector in intake.reflectors.items():
                name = resource.full_name
                self.metrics.cache_objects.labels(name).set(len(reflector))
                more = reflector.restarts - restarts.get(name, 0)
                self.metrics.watch_restarts.labels(name).inc(max(more, 0))
                restarts[name] = reflector.restarts
            await asyncio.sleep(_METRICS_SECONDS)


@contextlib.asynccontextmanager
async def control_plane(
    find_access: Callable[[], Access], settings: Settings
) -> AsyncIterator[ControlPlane]:
    """Run a control plane for as long as the block lasts.

    `find_access` is called once for each thread, because credentials belong to one event loop. An
    error of any part ends the block.
    """
    one_policy(settings.scheduler.configuration)
    async with Client(find_access(), connections=settings.at_once) as client:
        election_client = Client(find_access(), connections=2)
        auth = MetricsAuth(Client(find_access(), connections=2)) if settings.metrics_auth else None
        plane = _assemble(client, election_client, settings, auth)
        background = BackgroundLoop(*_background_work(plane, election_client))
        async with background, asyncio.TaskGroup() as group:
            work = _main_work(plane, client, background, settings)
            tasks = [group.create_task(each) for each in work]
            try:
                yield plane
            finally:
                await plane.writer.stop()  # before the Lease is given back
                for task in tasks:
                    task.cancel()


def _assemble(
    client: Client, election_client: Client, settings: Settings, auth: MetricsAuth | None
) -> ControlPlane:
    metrics, health = Metrics(), Health()
    health.expect(_CACHES)
    loop, wakes = asyncio.get_running_loop(), list[Callable[[], None]]()

    def wake() -> None:
        """Wake the scheduler after an election; called in the background thread."""
        with contextlib.suppress(RuntimeError):  # the main loop has ended
            for each in wakes:
                loop.call_soon_threadsafe(each)

    election = None
    if settings.lease is not None:
        where = (settings.namespace, settings.lease)
        election = Election(
            election_client, *where, on_won=wake, on_lost=wake, timing=settings.timing
        )
    leads = election.holds if election is not None else _always
    writer = Writer(leads, settings.at_once, partial(_observe, metrics))
    known = with_own_namespace(settings.scheduler.configuration, settings.namespace)
    own = replace(settings.scheduler, configuration=known)
    scheduler = Scheduler(
        *(client, own, leads, writer, metrics),
        *(health.beat, health.expect_decision),
    )
    wakes.append(scheduler.wake)
    brake_report = BrakeReport(
        *(lambda: scheduler.engine, scheduler.intake.pause_switch, scheduler.events),
        *(metrics, health, _own_object(settings)),
    )
    if not settings.scheduler.dry_run:
        scheduler.listeners.append(brake_report.decided)
    decision_log = DecisionLog(settings.log_bounds, settings.log_folder)
    scheduler.listeners.append(partial(_log_decisions, scheduler, decision_log))
    probes = None
    if settings.health_port is not None:
        port, host = settings.health_port, settings.host
        rest = (decision_log, leads)
        probes = Probes(health, metrics.registry, port, host, LIMITS, auth, *rest)
    parts = (scheduler, writer, metrics, health, election, probes)
    return ControlPlane(*parts, brake_report, decision_log)


def _log_decisions(scheduler: Scheduler, log: DecisionLog, decisions: list[Decision]) -> None:
    if scheduler.engine is not None:
        log.note(scheduler.engine, decisions, time.time_ns())


def _own_object(settings: Settings) -> InvolvedObject:
    """What events of the control plane are about: its Lease, or without one its namespace."""
    if settings.lease is None:
        return InvolvedObject("v1", NAMESPACES.kind, "", settings.namespace)
    return InvolvedObject(LEASES.api_version, LEASES.kind, settings.namespace, settings.lease)


def _background_work(plane: ControlPlane, election_client: Client) -> Iterator[Work]:
    """What runs in the background loop."""
    election = plane.election
    if election is not None:

        async def elect() -> None:
            async with election_client:
                await election.run()

        yield elect
    if plane.probes is not None:
        yield plane.probes.run


def _main_work(
    plane: ControlPlane, client: Client, background: BackgroundLoop, settings: Settings
) -> Iterator[Coroutine[None, None, None]]:
    """What runs in the main loop."""
    scheduler = plane.scheduler
    yield background.failed()
    yield _fill_caches(plane)
    yield scheduler.intake.run()
    yield plane.writer.run()
    yield scheduler.run()
    yield plane.update_metrics()
    if not settings.scheduler.dry_run:
        yield Operator(client, plane.writer, scheduler, plane.metrics).run()
    yield Audit(scheduler, plane.metrics, plane.health).run(settings.audit_seconds)


async def _fill_caches(plane: ControlPlane) -> None:
    """Be ready once everything has been listed; until then, the garbage collector is off."""
    with paused_collector():
        while not plane.scheduler.intake.ready:
            await asyncio.sleep(_CACHES_POLL)
    plane.health.met(_CACHES)


def _always() -> bool:
    return True


def _observe(metrics: Metrics, operation: str, result: str, seconds: float) -> None:
    metrics.writes.labels(operation, result).inc()
    metrics.write_duration.labels(operation).observe(seconds)
