"""Whether the input shares single GPUs. Only then does the engine know devices.

Otherwise cards are a counted resource like any other, as in a cluster without TensorFusion.
"""

from collections.abc import Iterable

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.tensor_fusion.annotations import requests_compute, requests_gpus
from aliquot.dialects.tensor_fusion.objects import GpuFigures, GpuQuotaWire, GpuWire


def is_shared(manifests: Iterable[Manifest]) -> bool:
    """Is there a GPU, a GPUResourceQuota, or a pod that requests GPUs by annotation?"""
    return any(
        isinstance(each.content, GpuQuotaWire | GpuWire)
        or any(requests_gpus(view.metadata) for view in template_views(each))
        for each in manifests
    )


def counts_compute(manifests: Iterable[Manifest]) -> bool:
    """Does a pod request TFLOPs, or a GPUResourceQuota bound them?"""
    return any(
        _bounds_compute(each)
        or any(requests_compute(view.metadata) for view in template_views(each))
        for each in manifests
    )


def _bounds_compute(manifest: Manifest) -> bool:
    content = manifest.content
    spec = content.spec if isinstance(content, GpuQuotaWire) else None
    total, single = (spec.total, spec.single) if spec is not None else (None, None)
    written: list[GpuFigures | None] = []
    if total is not None:
        written += [total.requests, total.limits]
    if single is not None:
        written += [single.max_requests, single.max_limits, single.default_requests]
        written += [single.default_limits]
    return any(figures is not None and figures.tflops is not None for figures in written)
