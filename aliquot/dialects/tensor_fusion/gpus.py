"""TensorFusion's GPU objects, as devices; and what pods take of a device."""

from collections.abc import Iterable

from aliquot.dialects.core.labels import text
from aliquot.dialects.core.manifest import TENSOR_FUSION, Manifest
from aliquot.dialects.core.nodes import HOSTNAME
from aliquot.dialects.tensor_fusion.amounts import amount
from aliquot.dialects.tensor_fusion.objects import GpuStatus, GpuWire
from aliquot.engine import NO_GPU_AMOUNT, Device, GpuAmount, GpuAsk, resolve_ask

KIND = "GPU"
POOL = f"{TENSOR_FUSION}/gpupool"

_RUNNING = ("", "Running")
_OURS = ("", "tensor-fusion")


def device(manifest: Manifest, held: GpuAmount = NO_GPU_AMOUNT) -> Device:
    """A GPU; `held` is what pods that are known here hold of it.

    It takes pods while it is Running and no other device plugin has it; one that says nothing of
    that does. Without a node it is of no use, and `node` is empty.
    """
    said = status(manifest)
    capacity = amount(said.capacity, manifest, "status.capacity")
    available = (
        capacity if said.available is None else amount(said.available, manifest, "status.available")
    )
    if said.index is not None and said.index < 0:
        raise manifest.error("status.index", f"{said.index} is negative")
    return Device(
        name=manifest.name,
        node=text((said.node_selector or {}).get(HOSTNAME)),
        capacity=capacity,
        used_elsewhere=outside(capacity, available, held),
        model=said.gpu_model or "",
        vendor=said.vendor or "",
        pool=text((manifest.metadata.labels or {}).get(POOL)),
        index=said.index or 0,
        ready=(said.phase or "") in _RUNNING and (said.used_by or "") in _OURS,
    )


def status(manifest: Manifest) -> GpuStatus:
    """What is known of it; an empty one, if nothing is."""
    read = manifest.content
    assert isinstance(read, GpuWire)
    return read.status or GpuStatus()


def outside(capacity: GpuAmount, available: GpuAmount, held: GpuAmount) -> GpuAmount:
    """What is neither available nor held by pods that are known here: somebody else has it."""
    pairs = zip(capacity, available, held, strict=True)
    return GpuAmount(*(max(has - free - ours, 0) for has, free, ours in pairs))


def taken(asks: Iterable[GpuAsk], capacity: GpuAmount) -> GpuAmount:
    """What pods that are on a device take of it together, at most all of it."""
    total = NO_GPU_AMOUNT
    for ask in asks:
        wants = resolve_ask(ask.request, ask.request_part, capacity)
        total = total.plus(capacity if ask.whole else wants)
    return GpuAmount(min(total.tflops, capacity.tflops), min(total.vram, capacity.vram))
