"""TensorFusion's GPUResourceQuotas as the engine's: what a namespace may use of GPUs.

In `total`, 0 allows nothing and a figure that is absent has no bound; in `single`, both mean that
there is no bound.
"""

from typing import NamedTuple

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import INT32_MAX
from aliquot.dialects.tensor_fusion.amounts import bound
from aliquot.dialects.tensor_fusion.objects import GpuQuotaSpec, GpuQuotaWire, GpuSingle, GpuTotal
from aliquot.engine import GpuBound, GpuQuota

KIND = "GPUResourceQuota"

_THRESHOLD = 95
"""The default of TensorFusion's CRD, in percent."""


class Defaults(NamedTuple):
    """What a pod of a namespace requests of each GPU where it states nothing."""

    requests: GpuBound = GpuBound()
    limits: GpuBound = GpuBound()


NO_DEFAULTS = Defaults()


def quota(manifest: Manifest) -> GpuQuota:
    """What a namespace may use of GPUs."""
    all_of_them, each = total(manifest), single(manifest)
    threshold = _number(
        all_of_them.alert_threshold_percent, 100, manifest, "spec.total.alertThresholdPercent"
    )
    count = _number(each.max_gpu_count, INT32_MAX, manifest, "spec.single.maxGPUCount")
    defaults(manifest)
    return GpuQuota(
        namespace=manifest.namespace,
        name=manifest.name,
        requests=bound(all_of_them.requests, manifest, "spec.total.requests"),
        limits=bound(all_of_them.limits, manifest, "spec.total.limits"),
        workers=_number(all_of_them.max_workers, INT32_MAX, manifest, "spec.total.maxWorkers"),
        threshold=_THRESHOLD if threshold is None else threshold,
        single_requests=_zero_is_unbounded(
            bound(each.max_requests, manifest, "spec.single.maxRequests")
        ),
        single_limits=_zero_is_unbounded(bound(each.max_limits, manifest, "spec.single.maxLimits")),
        single_count=count or None,
    )


def is_written(manifest: Manifest) -> bool:
    """Has the quota a spec?"""
    read = manifest.content
    return isinstance(read, GpuQuotaWire) and read.spec is not None


def deny_all(manifest: Manifest, problem: str) -> GpuQuota:
    """A quota that allows nothing, for an object that has never been valid."""
    none = GpuBound(0, 0)
    return GpuQuota(manifest.namespace, manifest.name, none, none, workers=0, problem=problem)


def defaults(manifest: Manifest) -> Defaults:
    """What pods of the quota's namespace request where they state nothing."""
    each = single(manifest)
    return Defaults(
        _zero_is_unbounded(bound(each.default_requests, manifest, "spec.single.defaultRequests")),
        _zero_is_unbounded(bound(each.default_limits, manifest, "spec.single.defaultLimits")),
    )


def total(manifest: Manifest) -> GpuTotal:
    """The bounds for all pods together; an empty struct if there are none."""
    return _spec(manifest).total or GpuTotal()


def single(manifest: Manifest) -> GpuSingle:
    """The bounds for each pod; an empty struct if there are none."""
    return _spec(manifest).single or GpuSingle()


def _spec(manifest: Manifest) -> GpuQuotaSpec:
    read = manifest.content
    assert isinstance(read, GpuQuotaWire)
    return read.spec or GpuQuotaSpec()


def _number(value: int | None, most: int, manifest: Manifest, field: str) -> int | None:
    if value is not None and not 0 <= value <= most:
        manifest.refuse(field, f"{value} is not between 0 and {most}")
        return None
    return value


def _zero_is_unbounded(bounds: GpuBound) -> GpuBound:
    """The same bounds, where 0 means that there is none."""
    return GpuBound(bounds.tflops or None, bounds.vram or None)
