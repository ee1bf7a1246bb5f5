"""Rules for GPUResourceQuotas, alone and together: one function a rule.

A rule yields findings; it never raises and never changes anything. Numbers out of range are refused
in `quotas`, where they are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from aliquot.dialects.core.findings import Finding, Severity
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Wire
from aliquot.dialects.tensor_fusion.amounts import FIGURES
from aliquot.dialects.tensor_fusion.objects import GpuFigures, GpuQuotaSpec, GpuSingle, GpuTotal
from aliquot.dialects.tensor_fusion.quotas import KIND, defaults, quota
from aliquot.engine import GpuBound, GpuQuota, quantity
from aliquot.errors import InputError

_NONE = GpuBound(0, 0)


def gpu_quota(manifest: Manifest, last_good: GpuQuota | None = None) -> GpuQuota:
    """The quota in force, for a scheduler that must go on with an invalid object.

    For an invalid quota, the last valid one stays in force, with the problem; if there was none,
    the quota allows nothing.
    """
    try:
        found = quota(manifest)
        for finding in check_gpu_quota(manifest):
            if finding.severity == "error":
                raise finding.error()
    except InputError as error:
        problem = f"{error.field}: {error.problem}"
        nothing = GpuQuota(manifest.namespace, manifest.name, _NONE, _NONE, workers=0)
        return replace(last_good or nothing, problem=problem)
    return found


def check_gpu_quota(manifest: Manifest) -> Iterator[Finding]:
    """Errors and warnings about one quota by itself."""
    yield from limits_cover_requests(manifest)
    yield from single_within_total(manifest)
    yield from defaults_within_single(manifest)
    yield from only_known_fields(manifest)


def one_gpu_quota_a_namespace(objects: Iterable[Manifest]) -> Iterator[Finding]:
    """A namespace has at most one GPUResourceQuota."""
    first: dict[str, Manifest] = {}
    for manifest in objects:
        if manifest.kind == KIND:
            other = first.setdefault(manifest.namespace, manifest)
            if other is not manifest:
                problem = f"the namespace has a quota already: {other.title} ({other.place})"
                yield manifest.finding("error", "metadata.namespace", problem)


def limits_cover_requests(manifest: Manifest) -> Iterator[Finding]:
    """Limits are not below requests: in total, for a single pod and by default.

    A total of 0 is no slip but a word of its own, none at all, which TensorFusion takes.
    """
    found, (low, high) = quota(manifest), defaults(manifest)
    pairs: list[tuple[Severity, str, GpuBound, str, GpuBound]] = [
        ("error", "total.limits", found.limits, "requests", found.requests),
        ("warning", "single.maxLimits", found.single_limits, "maxRequests", found.single_requests),
        ("warning", "single.defaultLimits", high, "defaultRequests", low),
    ]
    for severity, where, limits, other, requests in pairs:
        for word, limit, request in _both(limits, requests):
            if limit < request:
                written, bound_text = quantity.text(word, limit), quantity.text(word, request)
                numbers = f"{written} is below {other}.{word} {bound_text}"
                weight = severity if limit else "warning"
                yield manifest.finding(weight, f"spec.{where}.{word}", numbers)


def single_within_total(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a bound for a single pod above the bound for all pods: it bounds nothing."""
    found = quota(manifest)
    pairs = [
        ("maxRequests", found.single_requests, "requests", found.requests),
        ("maxLimits", found.single_limits, "limits", found.limits),
    ]
    for where, each, whole, together in pairs:
        for word, high, most in _both(each, together):
            if high > most:
                written, bound_text = quantity.text(word, high), quantity.text(word, most)
                numbers = f"{written} is above total.{whole}.{word} {bound_text}"
                problem = f"{numbers}, which holds anyway"
                yield manifest.finding("warning", f"spec.single.{where}.{word}", problem)


def defaults_within_single(manifest: Manifest) -> Iterator[Finding]:
    """Warn of defaults above the bound for a single pod: a pod without requests cannot start."""
    found, (low, high) = quota(manifest), defaults(manifest)
    pairs = [
        ("defaultRequests", low, "maxRequests", found.single_requests),
        ("defaultLimits", high, "maxLimits", found.single_limits),
    ]
    for where, default, other, bound in pairs:
        for word, value, most in _both(default, bound):
            if value > most:
                written, bound_text = quantity.text(word, value), quantity.text(word, most)
                numbers = f"{written} is above {other}.{word} {bound_text}"
                problem = f"{numbers}: nobody can start with it"
                yield manifest.finding("warning", f"spec.single.{where}.{word}", problem)


_PERCENT = "compute"
"""Compute in percent of a GPU, which TensorFusion's quotas hold, and do not look at either."""


def only_known_fields(manifest: Manifest) -> Iterator[Finding]:
    """Warn of an unknown field: a misspelt bound is no bound."""
    known: dict[str, type[Wire]] = {
        "spec": GpuQuotaSpec,
        "spec.total": GpuTotal,
        "spec.single": GpuSingle,
    }
    for word in ("requests", "limits"):
        known[f"spec.total.{word}"] = GpuFigures
        known[f"spec.single.max{word.title()}"] = GpuFigures
        known[f"spec.single.default{word.title()}"] = GpuFigures
    for where, shape in known.items():
        names = {field.encode_name for field in msgspec.structs.fields(shape)}
        for name in _inside(manifest.body, where):
            if name not in names:
                is_percent = shape is GpuFigures and name == _PERCENT
                problem = "bounds nothing; state tflops" if is_percent else "is not known here"
                yield manifest.finding("warning", f"{where}.{name}", problem)


def _inside(body: object, where: str) -> Mapping[str, object]:
    found = body
    for word in where.split("."):
        found = found.get(word) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _both(one: GpuBound, other: GpuBound) -> Iterator[tuple[str, int, int]]:
    """Name and values of the figures that both bounds have."""
    for word, mine, theirs in zip(FIGURES, one, other, strict=True):
        if mine is not None and theirs is not None:
            yield word, mine, theirs
