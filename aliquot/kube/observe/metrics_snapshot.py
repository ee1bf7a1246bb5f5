"""A snapshot of quotas, queues, gangs and pending pods, as gauges for Prometheus.

The operator sets a `MetricsSnapshot` in the main loop; a scrape reads the last one in another
thread, and never the engine. So a snapshot must not be changed once it is set. Amounts are in base
units, as Prometheus asks for: cores, bytes, TFLOPs, and whole cards and pods. An unlimited amount
has no series. No label names a pod or a gang: the number of series would have no bound.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from aliquot.engine import (
    Figures,
    GangSummary,
    GpuQuotaSummary,
    QueueSummary,
    QuotaSummary,
    quantity,
)

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


class SnapshotCollector(Collector):
    """Turns the last `MetricsSnapshot` into gauges."""

    def __init__(self) -> None:
        self.snapshot = MetricsSnapshot()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges, from the same `MetricsSnapshot`."""
        snapshot = self.snapshot
        yield from _quotas(snapshot.quotas)
        yield from _queues(snapshot.queues)
        yield from _gangs(snapshot.gangs)
        yield from _gpu_quotas(snapshot.gpu_quotas)
        pending = (((reason,), number) for reason, number in snapshot.pending.items())
        yield _gauge("pending_pods", "Pods that wait, by reason.", ("reason",), pending)


def _quotas(quotas: Sequence[QuotaSummary]) -> Iterator[GaugeMetricFamily]:
    figures: dict[str, tuple[str, list[Figures]]] = {
        "used": ("held by bound pods", [each.used for each in quotas]),
        "request": ("used and asked for by waiting pods", [each.request for each in quotas]),
        "min": ("guaranteed", [each.min for each in quotas]),
        "max": ("the most it may use; absent if unlimited", [each.max for each in quotas]),
        "runtime": ("its share now", [each.runtime for each in quotas]),
        "borrowed": ("used above min", [each.borrowed for each in quotas]),
        "idle": ("min not used", [each.idle for each in quotas]),
    }
    names, labels = [each.name for each in quotas], ("quota", "resource")
    for word, (meaning, amounts) in figures.items():
        values = _by_resource(zip(names, amounts, strict=True))
        yield _gauge(f"quota_{word}", f"Of a quota: {meaning}.", labels, values)


def _queues(queues: Sequence[QueueSummary]) -> Iterator[GaugeMetricFamily]:
    labels = ("queue", "resource")
    deserved = _by_resource((each.name, each.deserved) for each in queues)
    yield _gauge("queue_deserved", "Of a queue: its share now.", labels, deserved)
    used = _by_resource((each.name, each.used) for each in queues)
    yield _gauge("queue_used", "Of a queue: held by bound pods.", labels, used)


def _gangs(gangs: Sequence[GangSummary]) -> Iterator[GaugeMetricFamily]:
    number: Counter[str] = Counter(gang.phase for gang in gangs)
    values = (((phase,), number[phase]) for phase in _PHASES)
    yield _gauge("gangs", "Gangs, by phase.", ("phase",), values)
    running: Counter[str] = Counter()
    for gang in gangs:
        running[gang.phase] += gang.running
    values = (((phase,), running[phase]) for phase in _PHASES)
    yield _gauge("gang_pods", "Bound pods of gangs, by phase of the gang.", ("phase",), values)


def _gpu_quotas(quotas: Sequence[GpuQuotaSummary]) -> Iterator[GaugeMetricFamily]:
    labels = ("namespace", "figure")
    used = (((each.namespace, figure), value) for each in quotas for figure, value in _gpus(each))
    yield _gauge("gpu_quota_used", "Of a quota on GPUs: held by bound pods.", labels, used)
    available = (
        ((each.namespace, figure), float(Fraction(left, _PERCENT)))
        for each in quotas
        for figure, left in each.available_percent.items()
        if left is not None
    )
    meaning = "Of a quota on GPUs: the part that is left, 0 to 1; absent if unlimited."
    yield _gauge("gpu_quota_available_ratio", meaning, labels, available)


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


def _gauge(
    name: str, meaning: str, labels: Sequence[str], values: Iterable[Value]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"aliquot_{name}", meaning, labels=labels)
    for at, value in values:
        family.add_metric(at, value)
    return family
