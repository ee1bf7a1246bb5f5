"""The scheduler: applies what the intake reports, runs cycles of the engine, executes decisions.

One loop in one thread: all changes are applied between two cycles, and none during a cycle. What is
between two cycles is done in parts, so that writes, watches and other tasks have their turn. The
engine is created when leadership is won, from the cluster's state at that time, and dropped when
leadership is lost: a decision that was not written never happened. If the engine raises, which is
a defect, it is created anew in the same way.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from aliquot.dialects.configuration import Configuration, knobs
from aliquot.engine import SECOND, Decision, Engine, Knobs
from aliquot.kube.api.backoff import pause
from aliquot.kube.api.client import Client
from aliquot.kube.control.rounds import LONGEST_WAIT, Rounds, steady_clock
from aliquot.kube.exchange.write_results import Backoff
from aliquot.kube.execution.dry_run import log_decisions
from aliquot.kube.execution.events import Events, of_pod
from aliquot.kube.execution.evictor import Limits
from aliquot.kube.execution.executor import Executor
from aliquot.kube.execution.pod_status import INVALID_POD, PodStatus, event_message
from aliquot.kube.execution.writer import Writer
from aliquot.kube.intake.intake import Intake
from aliquot.kube.observe.metrics import Metrics

_log = structlog.get_logger()

RESIZED_ABOVE_MAX = "ResizedAboveMax"
"""The event on a pod that was resized beyond the max of its quota, past the webhook."""
_PART = 10
"""Changes applied, or decisions carried out, before it is asked whether others should have their
turn: at 0.1 to 0.3 ms each."""
_IDLE_SECONDS = 0.01
"""How often to look whether all writes have ended: soon, and not a busy loop."""
_STATUS_SECONDS = 10.0
"""How often statuses are compared with the cluster even if nothing changes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a scheduler is to run."""

    configuration: Configuration
    policy: str | None = None
    """Overrides the policy of the configuration."""
    delete_after: float | None = None
    """Overrides `eviction.deleteAfter` of the configuration; in seconds."""
    dry_run: bool = False
    """Log decisions instead of carrying them out."""
    namespace: str = "aliquot-system"
    """Where Aliquot runs: an annotation of this namespace pauses evictions."""
    make_engine: Callable[[str, Knobs | None], Engine] = Engine
    """Makes the engine; one that records, for a bug report."""

    @property
    def knobs(self) -> Knobs:
        """The engine's part of the configuration."""
        found = knobs(self.configuration)
        if self.delete_after is None:
            return found
        eviction = replace(found.eviction, delete_after=round(self.delete_after * SECOND))
        return replace(found, eviction=eviction)

    @property
    def limits(self) -> Limits:
        """How long budgets are respected, and victims' grace periods."""
        eviction = self.knobs.eviction
        return Limits(eviction.delete_after / SECOND, eviction.max_grace // SECOND)

    @property
    def volume_bind_timeout(self) -> float:
        """How long a pod may wait for its volumes to be bound, in seconds."""
        return self.knobs.placement.volume_bind_timeout / SECOND


class Scheduler:
    """Has an engine while it leads, and runs its cycles."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        leads: Callable[[], bool],
        writer: Writer,
        metrics: Metrics,
        beat: Callable[[], None],
        expect_decision: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.engine: Engine | None = None
        """Exists while this replica leads and the intake is ready."""
        self.decided = asyncio.Event()
        """Set when statuses may have changed; the operator waits for it."""
        self.listeners: list[Callable[[list[Decision]], None]] = []
        """Called with the decisions of each cycle."""
        self.events = Events(client, writer)
        self._client = client
        self._settings = settings
        self._leads = leads
        self._writer = writer
        self._metrics = metrics
        self._beat = beat
        self._expect_decision = expect_decision
        self._rounds = Rounds()
        self._executor: Executor | None = None
        self._failures = 0
        self._quiet_since: float | None = None
        self._changed = False
        """Has the intake applied changes since statuses were last due?"""
        self._statuses_due = 0.0
        """When statuses are due even if nothing changes."""
        self.clock = steady_clock()
        chosen = settings.configuration, settings.policy
        self.intake = Intake(client, *chosen, self._rounds.wake, settings.namespace)
        self.pod_status = PodStatus(client, writer, lambda: self.intake.pods.shown)

    def wake(self) -> None:
        """Begin the next round soon: something has changed that no watch reports."""
        self._rounds.wake()

    async def run(self) -> None:
        """Run a cycle whenever something has changed, until cancelled."""
        while True:
            due = self.engine.next_deadline() if self.engine is not None else None
            await self._rounds.wait(due, self.clock())
            self._beat()
            await self._take_in()
            if self._executor is not None:
                self._executor.check_volumes()
            backoffs = self.intake.feed.settle()
            self._update_quiet_since()
            self._expect_decision(self.intake.ready and self._leads())
            if not self.intake.ready or not self._leads():
                self._resign()
            elif self.engine is None:
                await self._take_over()
            elif self.intake.feed.failed:
                await self._restart()
            elif self._writer.fenced:
                self._resign()  # leadership was lost for a moment, and with it a write
                self.wake()
            else:
                await self._decide(self.engine, backoffs)

    def _catch_up(self) -> None:
        """Apply what the watches have shown."""
        self._changed = self.intake.settle() or self._changed

    async def _take_in(self) -> None:
        """Apply what the watches have shown so far, in parts."""
        for _ in range(0, max(self.intake.queued, 1), _PART):
            self._changed = self.intake.settle(_PART) or self._changed
            await self._rounds.share()

    def _update_quiet_since(self) -> None:
        """Note since when no write can be under way, of another replica or of this one."""
        if not self._leads() or self.engine is not None:
            self._quiet_since = None
        elif self._quiet_since is None and self._writer.idle:
            self._quiet_since = time.monotonic()

    async def _take_over(self) -> None:
        """Create an engine from the cluster's state, now that no other replica writes.

        All writes of the former leader, and of this replica, must be in that state: so no write may
        be under way, and pods are listed again unless they have been since.
        """
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._keep_beating())
            self._writer.drop_all()
            while not self._writer.idle:
                self._writer.drop_all()
                await asyncio.sleep(_IDLE_SECONDS)
            if self._quiet_since is None or self.intake.read_since < self._quiet_since:
                await self.intake.refresh()
            beating.cancel()
        if not self._leads() or not self.intake.ready:
            return
        policy = self.intake.sharing_mode.policy
        engine = self._settings.make_engine(policy, self._settings.knobs)
        self.intake.feed.connect(engine, self.intake.mirror)
        self.pod_status.begin()
        self._executor = Executor(
            *(engine, self._client, self._writer, self.pod_status, self.events, self._metrics),
            *(self.intake.feed.report, self._catch_up, self._settings.limits),
            *(self.intake.shown_volumes, self._settings.volume_bind_timeout),
        )
        self.engine, self.clock = engine, steady_clock()
        _log.info(
            "leading",
            policy=self.intake.sharing_mode.policy,
            pods=engine.pod_count(),
            seconds=round(time.perf_counter() - began, 3),
        )
        await self._decide(engine)

    async def _keep_beating(self) -> None:
        """Beat while a long list is read, so that the liveness probe does not fail."""
        while True:
            self._beat()
            await asyncio.sleep(LONGEST_WAIT)

    def _resign(self) -> None:
        """Drop the engine, and all writes that have not been sent."""
        self.intake.feed.disconnect()
        if self._executor is not None:
            self._executor.stop()
            self._executor = None
        if self.engine is not None:
            _log.info("decides no longer")
            self.engine = None
            self._writer.drop_all()
            self.decided.set()

    async def _decide(self, engine: Engine, backoffs: Iterable[Backoff] = ()) -> None:
        self.intake.mirror.refresh_budgets()
        began = time.perf_counter()
        try:
            decisions = engine.cycle(self.clock(), bounded=True)
        except Exception:
            _log.exception("the engine failed, and is made anew")
            await self._restart()
            return
        self._failures = 0
        self._expect_decision(False)
        self._metrics.cycle_duration.observe(time.perf_counter() - began)
        self.intake.feed.note_lost(decisions)
        await self._rounds.share()
        if self._settings.dry_run:
            log_decisions(decisions)
        elif self._executor is not None:
            self._refuse_invalid_pods()
            self._warn_of_resizes(engine)
            self._executor.explain(backoffs)
            for begin in range(0, max(len(decisions), 1), _PART):
                self._executor.execute(decisions[begin : begin + _PART])
                await self._rounds.share()
        for listener in self.listeners:
            listener(decisions)
        if decisions or self._changed or time.monotonic() >= self._statuses_due:
            self._changed, self._statuses_due = False, time.monotonic() + _STATUS_SECONDS
            self.decided.set()

    async def _restart(self) -> None:
        """The engine has raised: drop it, and create another after a pause."""
        self._resign()
        self._failures += 1
        await asyncio.sleep(pause(self._failures))
        self.wake()

    def _warn_of_resizes(self, engine: Engine) -> None:
        """Tell pods that have grown in place past the webhook, where a quota is above max by it."""
        grown = self.intake.pods.grown
        for pod in list(grown.values()):
            known = engine.booked_node(pod.uid) is not None
            above = engine.above_max(pod.uid) if known else None
            if above is not None:
                message = f"{above}; what is above max is the first to go for claims that are owed"
                self.events.record(of_pod(pod), "Warning", RESIZED_ABOVE_MAX, message)
        grown.clear()

    def _refuse_invalid_pods(self) -> None:
        """Write why pending pods that cannot be read are not scheduled."""
        for pod, error in self.intake.pods.invalid.values():
            message = f"{error.field}: {error.problem}"
            words = event_message(INVALID_POD, message)
            then = partial(self.events.record, of_pod(pod), "Warning", "FailedScheduling", words)
            self.pod_status.refuse(pod, (INVALID_POD, message), then)
