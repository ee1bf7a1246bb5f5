"""TensorFusion's GPUResourceQuotas: what a namespace may use of GPUs, each by itself.

In `total`, 0 means none at all and what is not said has no bound; in `single`, both mean that there
is no bound.
"""

from typing import NamedTuple

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion.amounts import bound
from aliquot.dialects.tensor_fusion.objects import GpuQuotaSpec, GpuQuotaWire, GpuSingle, GpuTotal
from aliquot.engine import GpuBound, GpuQuota

KIND = "GPUResourceQuota"

_THRESHOLD = 95
_MOST = 2**31 - 1


class Defaults(NamedTuple):
    """What a pod of a namespace asks for of each GPU where it does not say."""

    requests: GpuBound = GpuBound()
    limits: GpuBound = GpuBound()


NO_DEFAULTS = Defaults()


def quota(manifest: Manifest) -> GpuQuota:
    """What a namespace may use of GPUs."""
    all_of_them, each = total(manifest), single(manifest)
    threshold = _number(
        all_of_them.alert_threshold_percent, 100, manifest, "spec.total.alertThresholdPercent"
    )
    count = _number(each.max_gpu_count, _MOST, manifest, "spec.single.maxGPUCount")
    defaults(manifest)
    return GpuQuota(
        namespace=manifest.namespace,
        name=manifest.name,
        requests=bound(all_of_them.requests, manifest, "spec.total.requests"),
        limits=bound(all_of_them.limits, manifest, "spec.total.limits"),
        workers=_number(all_of_them.max_workers, _MOST, manifest, "spec.total.maxWorkers"),
        threshold=_THRESHOLD if threshold is None else threshold,
        single_requests=_if_any(bound(each.max_requests, manifest, "spec.single.maxRequests")),
        single_limits=_if_any(bound(each.max_limits, manifest, "spec.single.maxLimits")),
        single_count=count or None,
    )


def is_written(manifest: Manifest) -> bool:
    """Does it say anything?"""
    read = manifest.content
    return isinstance(read, GpuQuotaWire) and read.spec is not None


def nothing(manifest: Manifest, problem: str) -> GpuQuota:
    """A quota that lets nobody have anything, because nobody can tell what it should be."""
    none = GpuBound(0, 0)
    return GpuQuota(manifest.namespace, manifest.name, none, none, workers=0, problem=problem)


def defaults(manifest: Manifest) -> Defaults:
    """What its pods ask for where they do not say."""
    each = single(manifest)
    return Defaults(
        _if_any(bound(each.default_requests, manifest, "spec.single.defaultRequests")),
        _if_any(bound(each.default_limits, manifest, "spec.single.defaultLimits")),
    )


def total(manifest: Manifest) -> GpuTotal:
    """What is written about all pods together; an empty one, if nothing is."""
    return _spec(manifest).total or GpuTotal()


def single(manifest: Manifest) -> GpuSingle:
    """What is written about each pod; an empty one, if nothing is."""
    return _spec(manifest).single or GpuSingle()


def _spec(manifest: Manifest) -> GpuQuotaSpec:
    read = manifest.content
    assert isinstance(read, GpuQuotaWire)
    return read.spec or GpuQuotaSpec()


def _number(value: int | None, most: int, manifest: Manifest, field: str) -> int | None:
    if value is not None and not 0 <= value <= most:
        raise manifest.error(field, f"{value} is not between 0 and {most}")
    return value


def _if_any(bounds: GpuBound) -> GpuBound:
    """The same, where 0 is no bound."""
    return GpuBound(bounds.tflops or None, bounds.vram or None)
