"""GPUs: devices, what pods request of them, and the GPU quotas of namespaces.

Whether a pod requests whole cards, fractions or slices, its request is written here as one amount
per device, times a number of devices.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

MODEL_PREFIX = "gpu.aliquot.dev/"
"""Resources that are cards of one model, such as `gpu.aliquot.dev/a100`: parts of what quotas are
charged in cards (see `books.node_classes`). No pod requests them."""
CARD_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
"""Resources of nodes and pods that are whole cards."""
WHOLE_GPU = 1_000_000
"""Fractions of a device are whole numbers of millionths: exact for percentages."""


class GpuAmount(NamedTuple):
    """Compute in milli-TFLOPs, memory in bytes."""

    tflops: int = 0
    vram: int = 0

    def plus(self, other: "GpuAmount", sign: int = 1) -> "GpuAmount":
        """The sum with another amount; the difference with sign -1."""
        return GpuAmount(self.tflops + sign * other.tflops, self.vram + sign * other.vram)

    def times(self, number: int) -> "GpuAmount":
        """So many times as much."""
        return GpuAmount(self.tflops * number, self.vram * number)


NO_GPU_AMOUNT = GpuAmount()


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What a pod requests of each of `count` devices on one node.

    `request` and `limit` are amounts; `request_part` and `limit_part` are added to them, as
    millionths of the device's capacity, for pods that request whole cards or a percentage. A
    `whole` request needs idle devices and takes all of each. Slices (`sliced`) are assigned by the
    node: they count against quotas, but the engine chooses no device.
    """

    request: GpuAmount = NO_GPU_AMOUNT
    limit: GpuAmount = NO_GPU_AMOUNT
    request_part: GpuAmount = NO_GPU_AMOUNT
    limit_part: GpuAmount = NO_GPU_AMOUNT
    count: int = 1
    whole: bool = False
    sliced: bool = False
    model: str = ""
    vendor: str = ""
    pool: str = ""
    indices: tuple[int, ...] = ()
    of_parts: bool = field(init=False, compare=False, repr=False)
    """Does what it takes depend on the card?"""
    of_kind: bool = field(init=False, compare=False, repr=False)
    """Will not every card do?"""

    def __post_init__(self) -> None:
        of_parts = self.request_part != NO_GPU_AMOUNT or self.limit_part != NO_GPU_AMOUNT
        of_kind = bool(self.model or self.vendor or self.pool or self.indices)
        object.__setattr__(self, "of_parts", of_parts)
        object.__setattr__(self, "of_kind", of_kind)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU.

    `used_elsewhere` is used by pods that the engine does not know, and is not free. A device that
    is not `ready` takes no new pods.
    """

    name: str
    node: str
    capacity: GpuAmount
    used_elsewhere: GpuAmount = NO_GPU_AMOUNT
    model: str = ""
    vendor: str = ""
    pool: str = ""
    index: int = 0
    ready: bool = True
    domain: str = ""
    """Which devices of the node are near it, as by NVLink or on its NUMA node; those with the same
    word. Empty if that is not known."""


class GpuBound(NamedTuple):
    """A bound of a GPU quota on compute and memory; None is no bound."""

    tflops: int | None = None
    vram: int | None = None


UNBOUND = GpuBound()


@dataclass(frozen=True, slots=True)
class GpuQuota:
    """What the pods of a namespace may use of GPUs: bounds on all together, and on each pod.

    A total of 0 allows nothing. The dialect reads a 0 in a `single` bound as None: no bound.
    `problem` says what is wrong with the object as it is written now; the bounds are then those of
    its last valid version, or, if there was none, allow nothing.
    """

    namespace: str
    name: str
    requests: GpuBound = UNBOUND
    limits: GpuBound = UNBOUND
    workers: int | None = None
    threshold: int = 95
    single_requests: GpuBound = UNBOUND
    single_limits: GpuBound = UNBOUND
    single_count: int | None = None
    problem: str = ""

    @property
    def totals(self) -> tuple[int | None, ...]:
        """The bounds on all pods together: what they request, their limits, how many they are."""
        return (*self.requests, *self.limits, self.workers)

    @property
    def bounds_single(self) -> bool:
        """Are there bounds on single pods?"""
        unbound = self.single_requests == UNBOUND and self.single_limits == UNBOUND
        return not unbound or self.single_count is not None


class Taken(NamedTuple):
    """What a pod takes of devices: of each device, and in total as its GPU quota counts it."""

    devices: tuple[str, ...]
    amounts: tuple[GpuAmount, ...]
    request: GpuAmount
    limit: GpuAmount
