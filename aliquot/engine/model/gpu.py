"""What the engine knows of GPUs: devices, what pods ask of them, and what namespaces may use.

Values, like those of `objects`: whatever manner a pod asked in, whole cards, parts or slices, what
it asks for is per device, times a number of devices.
"""

from dataclasses import dataclass
from typing import NamedTuple

WHOLE_GPU = 1_000_000
"""Parts of a device are counted in millionths."""


class GpuAmount(NamedTuple):
    """Compute in milli-TFLOPs, memory in bytes."""

    tflops: int = 0
    vram: int = 0

    def plus(self, other: "GpuAmount", sign: int = 1) -> "GpuAmount":
        """With so much more, or less."""
        return GpuAmount(self.tflops + sign * other.tflops, self.vram + sign * other.vram)


NO_GPU_AMOUNT = GpuAmount()


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What a pod asks for of each of `count` devices on one node.

    Amounts, and beside them parts of what the device has (in millionths), for whoever asks for
    whole cards or for a percentage. Who is `whole` needs idle devices, and takes all of each.
    Slices (`sliced`) are handed out by the node: they count against quotas, but no device is
    chosen.
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


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. What is used on it `outside` of the pods that are known here is not there for them.

    One that is not `ready` takes nobody new.
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


class GpuBound(NamedTuple):
    """A bound of a quota on compute and memory; None is no bound."""

    tflops: int | None = None
    vram: int | None = None


UNBOUND = GpuBound()


@dataclass(frozen=True, slots=True)
class GpuQuota:
    """What the pods of a namespace may use of GPUs together, and each of them.

    A total of 0 means none at all; in `single` bounds a 0 was read as None already: no bound.
    `problem` says what is wrong with the object as it is written now: what is here is then the last
    good one, or, if there was none, a quota that allows nothing.
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


class Taken(NamedTuple):
    """What a pod has of devices: of each, and all in all, as its quota counts it."""

    devices: tuple[str, ...]
    amounts: tuple[GpuAmount, ...]
    request: GpuAmount
    limit: GpuAmount
