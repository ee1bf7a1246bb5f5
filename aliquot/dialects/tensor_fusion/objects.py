"""TensorFusion's objects as they stand in JSON: GPUResourceQuota and GPU."""

from typing import Any

import msgspec

from aliquot.dialects.core.objects import Metadata, Wire


class GpuFigures(Wire):
    """Compute and memory; each is checked where it is read, so that a message names it."""

    tflops: Any = None
    vram: Any = None


class GpuTotal(Wire):
    """What the pods of a namespace may use together."""

    requests: GpuFigures | None = None
    limits: GpuFigures | None = None
    max_workers: int | None = None
    alert_threshold_percent: int | None = None


class GpuSingle(Wire):
    """What each pod may request of a GPU, and its defaults where it requests nothing."""

    max_requests: GpuFigures | None = None
    max_limits: GpuFigures | None = None
    default_requests: GpuFigures | None = None
    default_limits: GpuFigures | None = None
    max_gpu_count: int | None = msgspec.field(default=None, name="maxGPUCount")


class GpuQuotaSpec(Wire):
    """The spec of a GPUResourceQuota."""

    total: GpuTotal | None = None
    single: GpuSingle | None = None


class GpuQuotaWire(Wire):
    """A GPUResourceQuota: what a namespace may use of GPUs."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: GpuQuotaSpec | None = None
    status: dict[str, Any] | None = None


class GpuStatus(Wire):
    """A GPU's capacity, what of it is available, and its node."""

    capacity: GpuFigures | None = None
    available: GpuFigures | None = None
    node_selector: dict[str, Any] | None = None
    phase: str | None = None
    gpu_model: str | None = None
    vendor: str | None = None
    index: int | None = None
    numa_node: int | None = None
    used_by: str | None = None


class GpuWire(Wire):
    """A GPU."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    status: GpuStatus | None = None
