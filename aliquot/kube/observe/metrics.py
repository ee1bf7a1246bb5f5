"""The metrics of a replica, for Prometheus; docs/reference/metrics.md explains each.

Names begin with `aliquot_`, times are in seconds, counters end in `_total`. No label may ever hold
the name of a pod: the number of series would have no bound. The registry is not the global one, so
that a program that uses Aliquot as a library does not find these metrics in its own. Every method
and metric is safe in any thread, and cheap enough to be called for every decision.
"""

import platform
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from aliquot.engine import EVICTION_REASONS, Bind, Decision, Evict, Figures, Nominate, Wait
from aliquot.kube.observe import catalogue
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot, SnapshotCollector
from aliquot.version import __version__

DECISION_WORDS = {Bind: "bind", Wait: "hold", Evict: "evict", Nominate: "nominate"}
"""The decisions in metrics and logs, which dashboards match: there, a pod that waits is on hold."""
_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""From half a millisecond, a cycle with nothing to do, to the timeout of a request."""
_LONG = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    *(60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400),
)
"""From 5 ms to a day: some pods start at once, others wait overnight for their quota."""


class Metrics:
    """All metrics of a replica, in a registry of their own."""

    def __init__(self) -> None:
        # `_created` series would double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._collector = SnapshotCollector()
        registry.register(self._collector)
        ProcessCollector(registry=registry)
        build_info(registry)
        self.decisions = Counter(*catalogue.DECISIONS.declared, registry=registry)
        self.evictions = Counter(*catalogue.EVICTIONS.declared, registry=registry)
        self.evictions_held_back = Counter(
            *catalogue.EVICTIONS_HELD_BACK.declared, registry=registry
        )
        self.evictions_last_minute = Gauge(
            *catalogue.EVICTIONS_LAST_MINUTE.declared, registry=registry
        )
        self.evictions_paused = Gauge(*catalogue.EVICTIONS_PAUSED.declared, registry=registry)
        self.budget_overrides = Counter(*catalogue.BUDGET_OVERRIDES.declared, registry=registry)
        self.writes = Counter(*catalogue.WRITES.declared, registry=registry)
        self.watch_restarts = Counter(*catalogue.WATCH_RESTARTS.declared, registry=registry)
        self.cycle_duration = Histogram(
            *catalogue.CYCLE_DURATION.declared, buckets=_SHORT, registry=registry
        )
        self.write_duration = Histogram(
            *catalogue.WRITE_DURATION.declared, buckets=_SHORT, registry=registry
        )
        self.pod_wait = Histogram(*catalogue.POD_WAIT.declared, buckets=_LONG, registry=registry)
        self.leader = Gauge(*catalogue.LEADER.declared, registry=registry)
        self.invariant_violations = Gauge(
            *catalogue.INVARIANT_VIOLATIONS.declared, registry=registry
        )
        self.cache_objects = Gauge(*catalogue.CACHE_OBJECTS.declared, registry=registry)
        self.writes_waiting = Gauge(*catalogue.WRITES_WAITING.declared, registry=registry)
        for brake in ("rate", "pause"):
            self.evictions_held_back.labels(brake)
        for reason in EVICTION_REASONS:
            self.evictions.labels(reason.value)
        for word in DECISION_WORDS.values():
            self.decisions.labels(word)  # starts at 0, so that `increase()` sees the first one

    @property
    def snapshot(self) -> MetricsSnapshot:
        """The last snapshot of quotas, queues and gangs; it must not be changed once set."""
        return self._collector.snapshot

    @snapshot.setter
    def snapshot(self, snapshot: MetricsSnapshot) -> None:
        self._collector.snapshot = snapshot

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count decisions by kind, a pod each, and evictions by reason."""
        for decision in decisions:
            pods = 1
            if isinstance(decision, Nominate):
                pods = len(decision.pods)
                self.decided(decision.victims)
            elif isinstance(decision, Evict):
                self.evictions.labels(str(decision.reason)).inc()
            self.decisions.labels(DECISION_WORDS[type(decision)]).inc(pods)

    def evicted(self, quota: str, charge: Figures, seconds: float) -> None:
        """Add up what a pod of this quota had run for, which is lost with it."""
        self._collector.note_lost(quota, charge, seconds)


def build_info(registry: CollectorRegistry) -> None:
    """Register a gauge whose labels name the version of Aliquot and of Python."""
    info = Gauge(*catalogue.BUILD_INFO.declared, registry=registry)
    info.labels(__version__, platform.python_version()).set(1)
