"""A snapshot of quotas, queues, gangs and pending pods, as gauges for Prometheus.

The operator sets a `MetricsSnapshot` in the main loop; a scrape reads the last one in another
thread, and never the engine. So a snapshot must not be changed once it is set. Amounts are in base
units, as Prometheus asks for: cores, bytes, TFLOPs, and whole cards and pods. An unlimited amount
has no series. `tree` is empty for quotas that share all nodes: Prometheus drops such a label. No
label names a pod or a gang: the number of series would have no bound.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from aliquot.engine import (
    Figures,
    GangSummary,
    GpuQuotaSummary,
    QueueSummary,
    QuotaSummary,
    loans,
    quantity,
)
from aliquot.kube.observe import catalogue
from aliquot.kube.observe.catalogue import Metric

Value = tuple[tuple[str, ...], float]
"""The values of the labels, and the value of the gauge."""

_PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """All figures of one moment; `pending` counts waiting pods by reason."""

    quotas: Sequence[QuotaSummary] = ()
    queues: Sequence[QueueSummary] = ()
    gangs: Sequence[GangSummary] = ()
    gpu_quotas: Sequence[GpuQuotaSummary] = ()
    pending: Mapping[str, int] = field(default_factory=dict)
    owed: Mapping[str, Figures] = field(default_factory=dict)
    """By quota, what is owed to its waiting claims."""
    passed: Mapping[str, float] = field(default_factory=dict)
    """By quota, or "" without one: for how many seconds a waiting claim has been passed."""


class SnapshotCollector(Collector):
    """Turns the last `MetricsSnapshot` into gauges, and what was lost into a counter."""

    def __init__(self) -> None:
        self.snapshot = MetricsSnapshot()
        self._lost: dict[tuple[str, str], float] = {}
        """What evicted pods had run, in base units times seconds, by quota and resource."""

    def note_lost(self, quota: str, charge: Figures, seconds: float) -> None:
        """A pod was evicted that has run for so long; called by the main loop alone."""
        for resource, amount in charge.items():
            key, lost = (quota, resource), amount / quantity.per_one(resource) * seconds
            self._lost[key] = self._lost.get(key, 0.0) + lost

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """All gauges, from the same `MetricsSnapshot`."""
        snapshot = self.snapshot
        yield from _quotas(snapshot)
        yield self._evicted(snapshot.quotas)
        yield from _queues(snapshot.queues)
        yield from _gangs(snapshot.gangs)
        yield from _gpu_quotas(snapshot.gpu_quotas)
        pending = (((reason,), number) for reason, number in snapshot.pending.items())
        yield _gauge(catalogue.PENDING_PODS, pending)

    def _evicted(self, quotas: Sequence[QuotaSummary]) -> CounterMetricFamily:
        """From 0 on, so that `increase()` sees the first loss; of quotas that still exist."""
        family = CounterMetricFamily(*catalogue.EVICTED_RESOURCE_SECONDS.family)
        for quota in quotas:
            for resource in quota.used:
                lost = self._lost.get((quota.name, resource), 0.0)
                family.add_metric((quota.name, quota.tree or "", resource), lost)
        return family


def _quotas(snapshot: MetricsSnapshot) -> Iterator[GaugeMetricFamily]:
    quotas, owed = snapshot.quotas, snapshot.owed
    figures: dict[Metric, list[Figures]] = {
        catalogue.QUOTA_USED: [each.used for each in quotas],
        catalogue.QUOTA_REQUEST: [each.request for each in quotas],
        catalogue.QUOTA_MIN: [each.min for each in quotas],
        catalogue.QUOTA_MAX: [each.max for each in quotas],
        catalogue.QUOTA_RUNTIME: [each.runtime for each in quotas],
        catalogue.QUOTA_BORROWED: [each.borrowed for each in quotas],
        catalogue.QUOTA_LENT: list(_lent(quotas)),
        catalogue.QUOTA_IDLE: [each.idle for each in quotas],
        catalogue.QUOTA_OWED: [
            {name: owed.get(each.name, {}).get(name, 0) for name in each.used} for each in quotas
        ],
    }
    for metric, amounts in figures.items():
        values = (
            ((quota.name, quota.tree or "", resource), value)
            for quota, figure in zip(quotas, amounts, strict=True)
            for (_, resource), value in _by_resource([(quota.name, figure)])
        )
        yield _gauge(metric, values)
    passed = {"": "", **{each.name: each.tree or "" for each in quotas}}
    since = (((name, tree), snapshot.passed.get(name, 0.0)) for name, tree in passed.items())
    yield _gauge(catalogue.PASSED_CLAIM_SECONDS, since if quotas or snapshot.passed else ())


def _lent(quotas: Sequence[QuotaSummary]) -> Iterator[Figures]:
    """What each quota lends, in the resources that it could lend."""
    lent: Counter[tuple[str, str]] = Counter()
    for loan in loans(quotas):
        lent[loan.lender, loan.resource] += loan.amount
    for each in quotas:
        yield {name: lent[each.name, name] for name in each.idle}


def _queues(queues: Sequence[QueueSummary]) -> Iterator[GaugeMetricFamily]:
    deserved = _by_resource((each.name, each.deserved) for each in queues)
    yield _gauge(catalogue.QUEUE_DESERVED, deserved)
    used = _by_resource((each.name, each.used) for each in queues)
    yield _gauge(catalogue.QUEUE_USED, used)


def _gangs(gangs: Sequence[GangSummary]) -> Iterator[GaugeMetricFamily]:
    number: Counter[str] = Counter(gang.phase for gang in gangs)
    yield _gauge(catalogue.GANGS, (((phase,), number[phase]) for phase in _PHASES))
    running: Counter[str] = Counter()
    for gang in gangs:
        running[gang.phase] += gang.running
    yield _gauge(catalogue.GANG_PODS, (((phase,), running[phase]) for phase in _PHASES))


def _gpu_quotas(quotas: Sequence[GpuQuotaSummary]) -> Iterator[GaugeMetricFamily]:
    used = (((each.namespace, figure), value) for each in quotas for figure, value in _gpus(each))
    yield _gauge(catalogue.GPU_QUOTA_USED, used)
    available = (
        ((each.namespace, figure), float(Fraction(left, _PERCENT)))
        for each in quotas
        for figure, left in each.available_percent.items()
        if left is not None
    )
    yield _gauge(catalogue.GPU_QUOTA_AVAILABLE, available)


def _gpus(quota: GpuQuotaSummary) -> Iterator[tuple[str, float]]:
    for word, amount in (("requests", quota.requests), ("limits", quota.limits)):
        yield f"{word}.tflops", amount.tflops / quantity.per_one("tflops")
        yield f"{word}.vram", amount.vram
    yield "workers", quota.workers


def _by_resource(named: Iterable[tuple[str, Figures]]) -> Iterator[Value]:
    for name, amounts in named:
        for resource, amount in amounts.items():
            if amount < quantity.LIMIT:
                yield (name, resource), amount / quantity.per_one(resource)


def _gauge(metric: Metric, values: Iterable[Value]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(*metric.family)
    for at, value in values:
        family.add_metric(at, value)
    return family
