"""The scheduler: news in, a cycle of the engine, decisions out; for as long as it leads.

One loop, one thread: between two cycles everything that was heard is taken note of, during a cycle
nothing changes. An engine is made when leadership is won, from what the cluster holds then, and
thrown away when it is lost: what was decided and not written never happened. Should the engine
fail, which is a defect, it is made anew in the same way.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from aliquot.dialects.configuration import Configuration, knobs
from aliquot.dialects.core.objects import PodWire
from aliquot.engine import Decision, Engine, Event, Pod, Shape, Wait
from aliquot.errors import InputError
from aliquot.kube.api.backoff import pause
from aliquot.kube.api.client import Client
from aliquot.kube.control.events import Events, of_pod
from aliquot.kube.control.executor import Executor
from aliquot.kube.control.intake import Intake
from aliquot.kube.control.pod_status import PodStatusWriter
from aliquot.kube.control.writer import Writer
from aliquot.kube.observe.metrics import Metrics

_log = structlog.get_logger()

INVALID_POD = "InvalidPod"
_TOGETHER = 0.003
"""How long to wait for more news before deciding, in seconds."""
_SOON = 0.01
"""How long to wait at least."""
_SHOWN_EVERY = 10.0
_BEAT = 1.0
"""How often to look around even if nothing happens."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a scheduler is to run."""

    configuration: Configuration
    policy: str | None = None
    """In place of the one that is configured."""
    delete_after: float | None = None
    """After how many seconds a pod is deleted whose eviction a budget refuses; None: never."""
    dry_run: bool = False


class Scheduler:
    """Keeps an engine while it leads, and lets it decide."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        leads: Callable[[], bool],
        writer: Writer,
        metrics: Metrics,
        beat: Callable[[], None],
    ) -> None:
        self.engine: Engine | None = None
        """There while it leads and knows the cluster."""
        self.decided = asyncio.Event()
        """Set whenever something may have changed that statuses show."""
        self.listeners: list[Callable[[list[Decision]], None]] = []
        """Told of all that is decided."""
        self.events = Events(client, writer)
        self._client = client
        self._settings = settings
        self._leads = leads
        self._writer = writer
        self._metrics = metrics
        self._beat = beat
        self._news = asyncio.Event()
        self._executor: Executor | None = None
        self._pod_status = PodStatusWriter(client, writer)
        self._failures = 0
        self._quiet_since: float | None = None
        self._broken = False
        """Has the engine failed?"""
        self._heard = False
        self._shown_by = 0.0
        """When statuses are looked at again, even if nothing happens."""
        self._now = _steady_clock()
        self.intake = Intake(
            *(client, settings.configuration, settings.policy),
            *(self._hear, self._news.set, self._cannot_read),
        )

    def wake(self) -> None:
        """Look around soon: something has changed that is no object."""
        self._news.set()

    async def run(self) -> None:
        """Decide whenever there is news, for as long as this is not cancelled."""
        while True:
            await self._wait()
            self._beat()
            self._heard = self.intake.settle() or self._heard
            self._look_who_writes()
            if not self.intake.ready or not self._leads():
                self._resign()
            elif self.engine is None:
                await self._take_over()
            elif self._broken:
                await self._begin_anew()
            elif self._writer.lapsed:
                self._resign()  # it led no longer for a moment, and what was to be written is lost
                self.wake()
            else:
                await self._decide(self.engine)

    async def _wait(self) -> None:
        """Until there is news, or something is due."""
        seconds = _BEAT
        if self.engine is not None and (due := self.engine.next_deadline()) is not None:
            seconds = min(max((due - self._now()) / 1e9, _SOON), _BEAT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
                await asyncio.sleep(_TOGETHER)
        self._news.clear()

    def _look_who_writes(self) -> None:
        """Note since when nothing can be under way, neither another's nor ours."""
        if not self._leads() or self.engine is not None:
            self._quiet_since = None
        elif self._quiet_since is None and self._writer.idle:
            self._quiet_since = time.monotonic()

    async def _take_over(self) -> None:
        """Make an engine from what the cluster holds, now that nobody else writes.

        What the last holder wrote, or we did before, must be among that: so nothing of ours is
        under way, and pods are read anew, unless they have been since.
        """
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._go_on_beating())
            self._writer.drop_all()
            while not self._writer.idle:
                self._writer.drop_all()
                await asyncio.sleep(_SOON)
            if self._quiet_since is None or self.intake.read_since < self._quiet_since:
                await self.intake.refresh()
            beating.cancel()
        if not self._leads() or not self.intake.ready:
            return
        engine = Engine(self.intake.sharing_mode.policy, knobs(self._settings.configuration))
        self.intake.mirror.replay(engine.apply)
        self._executor = Executor(
            *(engine, self.intake, self._client, self._writer),
            *(self.events, self._metrics, self.wake, self._settings.delete_after),
        )
        self._executor.adopt()
        self.engine, self._now = engine, _steady_clock()
        for each in self.intake.pods.unread.values():
            self._say_why_it_waits(*each)
        _log.info(
            "leading",
            policy=self.intake.sharing_mode.policy,
            pods=len(engine.state.pods),
            seconds=round(time.perf_counter() - began, 3),
        )
        await self._decide(engine)

    async def _go_on_beating(self) -> None:
        """It may take long until everything is read, but nothing hangs."""
        while True:
            self._beat()
            await asyncio.sleep(_BEAT)

    def _resign(self) -> None:
        self._broken = False
        if self.engine is not None:
            _log.info("decides no longer")
            self.engine = None
            self._writer.drop_all()
            self.decided.set()
        if self._executor is not None:
            self._executor.stop()
            self._executor = None

    async def _decide(self, engine: Engine) -> None:
        self.intake.objects.restate_budgets()
        began = time.perf_counter()
        try:
            decisions = engine.cycle(self._now())
        except Exception:
            _log.exception("the engine failed, and is made anew")
            await self._begin_anew()
            return
        self._failures = 0
        self._metrics.cycle_duration.observe(time.perf_counter() - began)
        if self._settings.dry_run:
            _log_only(decisions)
        elif self._executor is not None:
            self._executor.carry_out(decisions)
        for listener in self.listeners:
            listener(decisions)
        if decisions or self._heard or time.monotonic() >= self._shown_by:
            self._heard, self._shown_by = False, time.monotonic() + _SHOWN_EVERY
            self.decided.set()

    async def _begin_anew(self) -> None:
        """The engine has failed: make another, but not at once."""
        self._resign()
        self._failures += 1
        await asyncio.sleep(pause(self._failures))
        self.wake()

    def _hear(self, event: Event) -> None:
        if self._executor is None or self._broken:
            return
        try:
            self._executor.hear(event)
        except Exception:
            _log.exception("the engine failed, and is made anew")
            self._broken = True

    def _cannot_read(self, wire: PodWire, error: InputError) -> None:
        """A pod makes no sense: say so, and let it wait; whoever takes over says it of all."""
        _log.warning("a pod makes no sense", problem=str(error))
        if self.engine is not None and (wire.metadata.uid or "") in self.intake.pods.unread:
            self._say_why_it_waits(wire, error)

    def _say_why_it_waits(self, wire: PodWire, error: InputError) -> None:
        if self._settings.dry_run:
            return
        about = wire.metadata
        pod = Pod(about.uid or "", about.namespace or "", about.name, Shape(()))
        conditions = wire.status.conditions if wire.status is not None else None
        said = (INVALID_POD, f"{error.field}: {error.problem}")
        if any((each.reason, each.message) == said for each in conditions or ()):
            return
        self._pod_status.refuse(pod, said, known=False)
        self.events.tell(of_pod(pod), "Warning", "FailedScheduling", said[1])


def _steady_clock() -> Callable[[], int]:
    """A clock that begins with the time of day, and goes on whatever is done to that.

    What is waited for would otherwise be given up, and others asked to go, when a clock is set.
    """
    ahead = time.time_ns() - time.monotonic_ns()
    return lambda: ahead + time.monotonic_ns()


def _log_only(decisions: list[Decision]) -> None:
    for each in decisions:
        word = type(each).__name__.lower()
        if isinstance(each, Wait):
            why = {"reason": each.refusal.reason.value, "message": each.refusal.message}
        else:
            shown = {name: getattr(each, name, None) for name in ("node", "reason", "message")}
            why = {name: str(value) for name, value in shown.items() if value is not None}
        _log.info("would decide", decision=word, pod=each.pod.path, **why)
