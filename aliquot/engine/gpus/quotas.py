"""GPU quotas by namespace: what its pods use, and whether more may start.

Usage is a tally of the ledger, counted with every booking, so that nothing is counted twice or
lost. Bounds are checked in a fixed order, those on a single pod before those on all pods, and the
first that is exceeded is reported.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aliquot.engine.model.gpu import NO_GPU_AMOUNT, GpuAmount, GpuQuota, Taken
from aliquot.engine.model.quantity import text

_TOTALS = (
    ("total.max.tflops.request", "tflops"),
    ("total.max.vram.request", "vram"),
    ("total.max.tflops.limit", "tflops"),
    ("total.max.vram.limit", "vram"),
    ("total.max.workers.limit", "workers"),
)
"""The bounds on all pods together, and their units, in the order in which they are checked."""


class Usage(NamedTuple):
    """What pods use of GPUs together."""

    requests: GpuAmount = NO_GPU_AMOUNT
    limits: GpuAmount = NO_GPU_AMOUNT
    workers: int = 0

    def plus(self, taken: Taken, sign: int) -> "Usage":
        """The usage with one pod more, or less with sign -1."""
        requests = self.requests.plus(taken.request, sign)
        return Usage(requests, self.limits.plus(taken.limit, sign), self.workers + sign)

    @property
    def figures(self) -> tuple[int, ...]:
        """All figures, in the order in which bounds on them are checked."""
        return (*self.requests, *self.limits, self.workers)


_NO_FIGURES = (0, 0, 0, 0, 0)


class DeviceRequest(NamedTuple):
    """Request and limit of a pod on each device, and the number of devices."""

    request: GpuAmount
    limit: GpuAmount
    devices: int


class Exceeded(NamedTuple):
    """A bound that a pod would exceed."""

    namespace: str
    bound: str
    """Its name in messages: `total.max.tflops.request`; see docs/concepts/gpus.md."""
    requested: int
    limit: int
    used: int
    unit: str
    """The resource by whose unit the numbers are shown."""

    @property
    def is_total(self) -> bool:
        """Is it a bound on all pods: may the pod start once others of its namespace have ended?"""
        return self.bound.startswith("total.")

    @property
    def numbers(self) -> str:
        """The bound, and by how much it is exceeded, in the words of TensorFusion."""
        wants, most, used = (text(self.unit, n) for n in (self.requested, self.limit, self.used))
        words = (
            f"quota exceeded in namespace {self.namespace} for {self.bound}: "
            f"requested {wants}, limit {most}"
        )
        return f"{words}; used {used}" if self.is_total else words

    def __str__(self) -> str:
        if not self.is_total or self.requested > self.limit:
            return f"{self.numbers}; it can only start with a smaller request"
        return f"{self.numbers}, so it waits for pods of the namespace to end"


class GpuQuotas:
    """The GPU quotas by namespace, and what is used."""

    def __init__(self) -> None:
        self.known: dict[str, GpuQuota] = {}
        self._totals: dict[str, tuple[int | None, ...]] = {}
        """The bounds on all pods of each namespace together."""
        self._figures: dict[str, list[int]] = {}
        """What they use together, as `Usage.figures` are."""
        self.version = 0
        """Grows with every change of a GPU quota."""

    def set(self, quota: GpuQuota) -> None:
        """Add or replace the GPU quota of a namespace."""
        self.version += 1
        self.known[quota.namespace] = quota
        self._totals[quota.namespace] = quota.totals

    def remove(self, namespace: str) -> None:
        """Remove the GPU quota of a namespace."""
        self.version += 1
        self.known.pop(namespace, None)
        self._totals.pop(namespace, None)

    @property
    def used(self) -> dict[str, Usage]:
        """What the pods of each namespace use, where they use anything."""
        return {
            namespace: Usage(GpuAmount(*figures[:2]), GpuAmount(*figures[2:4]), figures[4])
            for namespace, figures in self._figures.items()
        }

    def set_used(self, namespace: str, used: Usage) -> None:
        """Take what the pods of a namespace use from elsewhere, not from bookings."""
        self._figures[namespace] = [*used.figures]

    def post(self, namespace: str, taken: Taken, sign: int) -> None:
        """Count what a pod takes (sign +1), or stop counting it (-1)."""
        figures = self._figures.get(namespace)
        if figures is None:
            figures = self._figures[namespace] = [*_NO_FIGURES]
        _, _, (tflops, vram), (most_tflops, most_vram) = taken
        figures[0] += sign * tflops
        figures[1] += sign * vram
        figures[2] += sign * most_tflops
        figures[3] += sign * most_vram
        figures[4] += sign
        if not any(figures):
            del self._figures[namespace]

    def check(
        self, namespace: str, requests: Iterable[DeviceRequest], pods: int | None = None
    ) -> Exceeded | None:
        """The first bound that pods with these requests, started together, would exceed.

        There is one request for each pod, unless `pods` says how many pods there are.
        """
        return next(self.exceeded(namespace, requests, pods), None)

    def within(self, namespace: str, requests: list[DeviceRequest], pods: int) -> bool:
        """Would pods with these requests, started together, stay within all bounds?"""
        quota = self.known.get(namespace)
        if quota is None:
            return True
        if quota.bounds_single and any(any(above_single(quota, each)) for each in requests):
            return False
        bounds, used = self._totals[namespace], self._figures.get(namespace, _NO_FIGURES)
        for most, has, wants in zip(bounds, used, _asked(requests, pods), strict=True):
            if most is not None and has + wants > most:
                return False
        return True

    def exceeded(
        self, namespace: str, requests: Iterable[DeviceRequest], pods: int | None = None
    ) -> Iterator[Exceeded]:
        """All bounds that they would exceed, in the order in which they are checked."""
        quota = self.known.get(namespace)
        if quota is None:
            return
        several = list(requests)
        for pod_request in several:
            yield from above_single(quota, pod_request)
        for each in self.totals(quota, several, len(several) if pods is None else pods):
            if each is not None and each.used + each.requested > each.limit:
                yield each

    def totals(
        self, quota: GpuQuota, requests: list[DeviceRequest], pods: int
    ) -> list[Exceeded | None]:
        """The bounds on all pods, exceeded or not, as `Usage.figures` are; None: no bound."""
        used = self._figures.get(quota.namespace, _NO_FIGURES)
        rows = zip(_TOTALS, quota.totals, used, _asked(requests, pods), strict=True)
        return [
            None if most is None else Exceeded(quota.namespace, bound, wants, most, has, unit)
            for (bound, unit), most, has, wants in rows
        ]


def _asked(requests: list[DeviceRequest], pods: int) -> tuple[int, ...]:
    """What pods with these requests ask for together, as `Usage.figures` are."""
    tflops = vram = most_tflops = most_vram = 0
    for request, limit, devices in requests:
        tflops += request[0] * devices
        vram += request[1] * devices
        most_tflops += limit[0] * devices
        most_vram += limit[1] * devices
    return tflops, vram, most_tflops, most_vram, pods


def above_single(quota: GpuQuota, pod_request: DeviceRequest) -> Iterator[Exceeded]:
    """The bounds on a single pod that a request exceeds."""
    requests, limits = quota.single_requests, quota.single_limits
    for bound, unit, most, wants in (
        ("tflops.request", "tflops", requests.tflops, pod_request.request.tflops),
        ("vram.request", "vram", requests.vram, pod_request.request.vram),
        ("tflops.limit", "tflops", limits.tflops, pod_request.limit.tflops),
        ("vram.limit", "vram", limits.vram, pod_request.limit.vram),
        ("gpuCount.limit", "gpus", quota.single_count, pod_request.devices),
    ):
        if most is not None and wants > most:
            yield Exceeded(quota.namespace, f"single.max.{bound}", wants, most, 0, unit)
