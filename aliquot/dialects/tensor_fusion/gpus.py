"""TensorFusion's GPU objects as the engine's devices, and what pods hold of a device."""

from collections.abc import Iterable

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import TENSOR_FUSION, Manifest
from aliquot.dialects.core.nodes import HOSTNAME
from aliquot.dialects.tensor_fusion.amounts import amount
from aliquot.dialects.tensor_fusion.objects import GpuStatus, GpuWire
from aliquot.engine import NO_GPU_AMOUNT, Device, GpuAmount, GpuAsk, resolve_ask

KIND = "GPU"
DOMAIN = "aliquot.dev/gpu-domain"
"""A label of a GPU: those of a node that have the same value are near each other."""
POOL = f"{TENSOR_FUSION}/gpupool"

_RUNNING = ("", "Running")
_OURS = ("", "tensor-fusion")


def device(manifest: Manifest, held: GpuAmount = NO_GPU_AMOUNT) -> Device:
    """A GPU as a device; `held` is what the pods that we know hold of it.

    It is ready for pods while it is Running and used by TensorFusion; so is one whose status does
    not say. `node` is empty where the status names no node.
    """
    written = status(manifest)
    capacity = amount(written.capacity, manifest, "status.capacity")
    available = capacity
    if written.available is not None:
        available = amount(written.available, manifest, "status.available")
    if written.index is not None and written.index < 0:
        manifest.refuse("status.index", f"{written.index} is negative")
    return Device(
        name=manifest.name,
        node=to_text((written.node_selector or {}).get(HOSTNAME)),
        capacity=capacity,
        used_elsewhere=outside_use(capacity, available, held),
        model=written.gpu_model or "",
        vendor=written.vendor or "",
        pool=to_text((manifest.metadata.labels or {}).get(POOL)),
        index=written.index or 0,
        domain=_domain(manifest, written),
        ready=(written.phase or "") in _RUNNING and (written.used_by or "") in _OURS,
    )


def _domain(manifest: Manifest, written: GpuStatus) -> str:
    """Which GPUs of the node are near it: by its label, else by its NUMA node."""
    labelled = to_text((manifest.metadata.labels or {}).get(DOMAIN))
    numa = "" if written.numa_node is None else f"numa-{written.numa_node}"
    return labelled or numa


def status(manifest: Manifest) -> GpuStatus:
    """The status of a GPU; an empty one if it has none."""
    read = manifest.content
    assert isinstance(read, GpuWire)
    return read.status or GpuStatus()


def outside_use(capacity: GpuAmount, available: GpuAmount, held: GpuAmount) -> GpuAmount:
    """What is neither available nor held by pods that we know: pods outside our view hold it."""
    pairs = zip(capacity, available, held, strict=True)
    return GpuAmount(*(max(has - free - ours, 0) for has, free, ours in pairs))


def taken(asks: Iterable[GpuAsk], capacity: GpuAmount) -> GpuAmount:
    """What the pods on a device hold of it together, at most all of it."""
    total = NO_GPU_AMOUNT
    for ask in asks:
        wants = resolve_ask(ask.request, ask.request_part, capacity)
        total = total.plus(capacity if ask.whole else wants)
    return GpuAmount(min(total.tflops, capacity.tflops), min(total.vram, capacity.vram))
