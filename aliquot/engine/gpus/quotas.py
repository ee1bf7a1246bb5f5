"""The quota store for GPUs: what the pods of a namespace use, and whether one more may start.

Usage is a fold over the ledger: what it books is counted here, what it takes back is taken back, so
that nothing is counted twice or lost. Checks come in a fixed order, bounds on a single pod before
those on all, and the first that fails is the answer.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aliquot.engine.model.gpu import NO_GPU_AMOUNT, GpuAmount, GpuQuota, Taken
from aliquot.engine.model.quantity import text


class Usage(NamedTuple):
    """What pods have of GPUs together."""

    requests: GpuAmount = NO_GPU_AMOUNT
    limits: GpuAmount = NO_GPU_AMOUNT
    workers: int = 0

    def plus(self, taken: Taken, sign: int) -> "Usage":
        """With one pod more, or less."""
        requests = self.requests.plus(taken.request, sign)
        return Usage(requests, self.limits.plus(taken.limit, sign), self.workers + sign)


class DeviceRequest(NamedTuple):
    """What a pod asks for: of each device, of all, and of how many."""

    request: GpuAmount
    limit: GpuAmount
    devices: int


class Exceeded(NamedTuple):
    """A bound that does not let a pod start."""

    namespace: str
    bound: str
    """By the id that the design gives it."""
    requested: int
    limit: int
    used: int
    unit: str
    """The resource in whose units the numbers are."""

    @property
    def is_total(self) -> bool:
        """Could it start once others of its namespace have ended?"""
        return self.bound.startswith("total.")

    def __str__(self) -> str:
        wants, most, used = (text(self.unit, n) for n in (self.requested, self.limit, self.used))
        words = (
            f"quota exceeded in namespace {self.namespace} for {self.bound}: "
            f"requested {wants}, limit {most}"
        )
        if not self.is_total:
            return f"{words}; it can only start with a smaller request"
        return f"{words}; used {used}, so it waits for pods of the namespace to end"


class GpuQuotas:
    """The quotas by namespace, and what is used."""

    def __init__(self) -> None:
        self.known: dict[str, GpuQuota] = {}
        self.used: dict[str, Usage] = {}
        self.version = 0
        """Grows with every change of a quota."""

    def set(self, quota: GpuQuota) -> None:
        """A namespace has this quota."""
        self.version += 1
        self.known[quota.namespace] = quota

    def remove(self, namespace: str) -> None:
        """A namespace has none."""
        self.version += 1
        self.known.pop(namespace, None)

    def post(self, namespace: str, taken: Taken, sign: int) -> None:
        """Count what a pod has, or no longer."""
        after = self.used[namespace] = self.used.get(namespace, Usage()).plus(taken, sign)
        if not any((*after.requests, *after.limits, after.workers)):
            del self.used[namespace]

    def check(
        self, namespace: str, wishes: Iterable[DeviceRequest], pods: int | None = None
    ) -> Exceeded | None:
        """May pods that wish for this start, all together? The first bound that says no.

        There is a wish for each pod, unless it is said how many pods there are.
        """
        quota = self.known.get(namespace)
        if quota is None:
            return None
        several = list(wishes)
        found = (each for wish in several for each in _single(quota, wish))
        number = len(several) if pods is None else pods
        return next(found, None) or next(self._total(quota, several, number), None)

    def _total(self, quota: GpuQuota, wishes: list[DeviceRequest], pods: int) -> Iterator[Exceeded]:
        used = self.used.get(quota.namespace, Usage())
        request = [sum(w.request[i] * w.devices for w in wishes) for i in (0, 1)]
        limit = [sum(w.limit[i] * w.devices for w in wishes) for i in (0, 1)]
        workers = (quota.workers, used.workers, pods)
        for bound, unit, (most, has, wants) in (
            ("tflops.request", "tflops", (quota.requests.tflops, used.requests.tflops, request[0])),
            ("vram.request", "vram", (quota.requests.vram, used.requests.vram, request[1])),
            ("tflops.limit", "tflops", (quota.limits.tflops, used.limits.tflops, limit[0])),
            ("vram.limit", "vram", (quota.limits.vram, used.limits.vram, limit[1])),
            ("workers.limit", "workers", workers),
        ):
            if most is not None and has + wants > most:
                yield Exceeded(quota.namespace, f"total.max.{bound}", wants, most, has, unit)


def _single(quota: GpuQuota, wish: DeviceRequest) -> Iterator[Exceeded]:
    requests, limits = quota.single_requests, quota.single_limits
    for bound, unit, most, wants in (
        ("tflops.request", "tflops", requests.tflops, wish.request.tflops),
        ("vram.request", "vram", requests.vram, wish.request.vram),
        ("tflops.limit", "tflops", limits.tflops, wish.limit.tflops),
        ("vram.limit", "vram", limits.vram, wish.limit.vram),
        ("gpuCount.limit", "gpus", quota.single_count, wish.devices),
    ):
        if most is not None and wants > most:
            yield Exceeded(quota.namespace, f"single.max.{bound}", wants, most, 0, unit)
