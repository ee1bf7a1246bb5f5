"""A scheduler that only watches: its engine decides beside the present one, and nothing is written.

There is no writer, no Lease and no event, so nothing here could change the cluster. The engine
follows what the cluster shows; what the shadow decides is compared with what happens, and taken
back (see `feed`).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from aliquot.dialects.configuration import Configuration, knobs
from aliquot.dialects.core.objects import PodWire
from aliquot.engine import Engine, Pod
from aliquot.kube.api.backoff import pause
from aliquot.kube.api.client import Client
from aliquot.kube.control.rounds import Rounds, steady_clock
from aliquot.kube.intake.intake import Intake
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.shadow.comparison import Comparison
from aliquot.kube.shadow.feed import ShadowFeed

_log = structlog.get_logger()

_EVICTIONS = ("PreemptionByScheduler", "EvictionByEvictionAPI")
"""The reasons of the condition DisruptionTarget of pods that were evicted by choice."""


class AnyScheduler:
    """Every scheduler name: the shadow has an opinion about every pod, unless told otherwise."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Settings:
    """How a shadow is to run."""

    configuration: Configuration
    policy: str | None = None
    scheduler_names: tuple[str, ...] = ()
    """The pods of these schedulers alone; empty: all pods."""


class Shadow:
    """Watches a cluster, decides, and compares."""

    def __init__(
        self, client: Client, settings: Settings, metrics: Metrics, beat: Callable[[], None]
    ) -> None:
        self.engine: Engine | None = None
        """Exists once everything has been listed."""
        self.since = time.time_ns()
        self.comparison = Comparison()
        self.clock = steady_clock()
        self._settings = settings
        self._metrics = metrics
        self._beat = beat
        self._rounds = Rounds()
        self._failures = 0
        opinions = self.comparison.opinions
        self._feed = ShadowFeed(
            *(self._rounds.wake, self.clock, opinions.__contains__, self._started, self._gone)
        )
        self.intake = Intake(
            *(client, settings.configuration, settings.policy, self._rounds.wake),
            feed=self._feed,
            scheduler_names=frozenset(settings.scheduler_names) or AnyScheduler(),
        )
        self.intake.pod_listeners.append(self._look_for_eviction)

    @property
    def policy(self) -> str:
        """The policy by which it decides."""
        return self.intake.sharing_mode.policy

    async def run(self) -> None:
        """Decide whenever something has changed, until cancelled."""
        while True:
            await self._rounds.wait(self._due, self.clock())
            self._beat()
            self.intake.settle()
            self._feed.take_back(self.clock())
            self._feed.settle()
            if not self.intake.ready:
                self._drop_engine()
            elif self.engine is None:
                self._begin()
            elif self._feed.failed:
                await self._begin_anew()
            if self.engine is not None:
                await self._decide(self.engine)

    @property
    def _due(self) -> int | None:
        """When the engine has a deadline, or a decision is taken back."""
        moments = [self._feed.due, self.engine.next_deadline() if self.engine is not None else None]
        return min((each for each in moments if each is not None), default=None)

    def _begin(self) -> None:
        """Make an engine of what the cluster holds now."""
        engine = Engine(self.policy, knobs(self._settings.configuration))
        self._catch_up()
        self._feed.connect(engine, self.intake.mirror)
        self.engine = engine
        _log.info("watching", policy=self.policy, pods=engine.pod_count())

    def _catch_up(self) -> None:
        """Compare what has happened to pods while there was no engine."""
        records, now = self.intake.mirror.records, self.clock()
        for uid in list(self.comparison.opinions):
            record = records.get(uid)
            if record is None or not record.alive:
                self.comparison.gone(uid, now)
            elif record.pod.node is not None:
                self.comparison.started(record.pod, now)

    def _drop_engine(self) -> None:
        self._feed.disconnect()
        self.engine = None

    async def _begin_anew(self) -> None:
        """The engine has raised, which is a defect: make another after a pause."""
        self._drop_engine()
        self._failures += 1
        await asyncio.sleep(pause(self._failures))
        self._rounds.wake()

    async def _decide(self, engine: Engine) -> None:
        self.intake.mirror.refresh_budgets()
        now, began = self.clock(), time.perf_counter()
        try:
            decisions = engine.cycle(now, bounded=True)
        except Exception:
            _log.exception("the engine failed, and is made anew")
            await self._begin_anew()
            return
        self._failures = 0
        self._metrics.cycle_duration.observe(time.perf_counter() - began)
        self._metrics.decided(decisions)
        self.comparison.decided(decisions, now)
        self._feed.decided(decisions, now)

    def _started(self, pod: Pod) -> None:
        found = self.comparison.started(pod, self.clock())
        if found is not None:
            fields = {"pod": pod.path, "node": pod.node, "would": found.opinion.node}
            words = found.opinion.reason or None
            _log.debug("compared", verdict=found.verdict.value, reason=words, **fields)

    def _gone(self, uid: str) -> None:
        self.comparison.gone(uid, self.clock())

    def _look_for_eviction(self, wire: PodWire) -> None:
        """Count a pod that the present scheduler, or another program, has evicted."""
        conditions = wire.status.conditions if wire.status is not None else None
        for each in conditions or ():
            if each.type == "DisruptionTarget" and each.reason in _EVICTIONS:
                self.comparison.evicted(wire.metadata.uid or "")
