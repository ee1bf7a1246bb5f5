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

from aliquot.engine import Bind, Decision, Evict, Nominate, Wait
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
        self.decisions = Counter(
            "aliquot_decisions_total", "What was decided.", ["decision"], registry=registry
        )
        self.evictions = Counter(
            "aliquot_evictions_total", "Evictions decided.", ["reason"], registry=registry
        )
        self.evictions_held_back = Counter(
            "aliquot_evictions_held_back_total",
            "Pods that began to wait because a brake held their evictions back.",
            ["brake"],
            registry=registry,
        )
        self.evictions_last_minute = Gauge(
            "aliquot_evictions_last_minute",
            "Evictions by choice that were decided in the last minute, which the brake counts.",
            registry=registry,
        )
        self.evictions_paused = Gauge(
            "aliquot_evictions_paused", "1 while evictions are paused.", registry=registry
        )
        self.budget_overrides = Counter(
            "aliquot_budget_overrides_total",
            "Pods deleted for an owed claim although disruption budgets refused their eviction.",
            registry=registry,
        )
        self.writes = Counter(
            "aliquot_writes_total", "Writes to the API.", ["write", "result"], registry=registry
        )
        self.watch_restarts = Counter(
            "aliquot_watch_restarts_total", "Watches begun anew.", ["kind"], registry=registry
        )
        self.cycle_duration = Histogram(
            "aliquot_cycle_duration_seconds",
            "Time to decide, a cycle.",
            buckets=_SHORT,
            registry=registry,
        )
        self.write_duration = Histogram(
            "aliquot_write_duration_seconds",
            "Time from sending a write to its answer.",
            ["write"],
            buckets=_SHORT,
            registry=registry,
        )
        self.pod_wait = Histogram(
            "aliquot_pod_wait_seconds",
            "Time from a pod's creation to its binding.",
            buckets=_LONG,
            registry=registry,
        )
        self.leader = Gauge("aliquot_leader", "1 if this replica leads.", registry=registry)
        self.invariant_violations = Gauge(
            "aliquot_invariant_violations",
            "What the last check of the ledger found wrong.",
            registry=registry,
        )
        self.cache_objects = Gauge(
            "aliquot_cache_objects", "Objects known.", ["kind"], registry=registry
        )
        self.writes_waiting = Gauge(
            "aliquot_writes_waiting", "Writes not yet answered.", registry=registry
        )
        for brake in ("rate", "pause"):
            self.evictions_held_back.labels(brake)
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


def build_info(registry: CollectorRegistry) -> None:
    """Register a gauge whose labels name the version of Aliquot and of Python."""
    labels = ["version", "python"]
    info = Gauge("aliquot_build_info", "What runs here; always 1.", labels, registry=registry)
    info.labels(__version__, platform.python_version()).set(1)
