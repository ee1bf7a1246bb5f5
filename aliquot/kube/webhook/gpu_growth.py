"""Changed GPU requests of running pods: what they ask for is held to the namespace's GPU quota.

TensorFusion changes a worker in place by the annotations of its pod. Nothing asks the scheduler
then, so such a write is judged here, by the bounds and in the order in which pods that start are:
the new amounts against the bounds on one pod, and the growth against what all pods may use. What
they use is in the quota's status, which the control plane writes a moment after each change. Parts
of a card in percent are not judged: what they come to is known where the cards are.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion import amounts, quotas
from aliquot.dialects.tensor_fusion.annotations import PREFIX, read_request
from aliquot.dialects.tensor_fusion.objects import GpuFigures, GpuQuotaWire
from aliquot.dialects.tensor_fusion.requests import gpu_ask
from aliquot.engine import NO_GPU_AMOUNT, DeviceRequest, GpuAmount, GpuQuotas, GpuUsage
from aliquot.errors import InputError
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.past_the_scheduler import node_of
from aliquot.kube.webhook.review import AdmissionRequest

_NOTHING = DeviceRequest(NO_GPU_AMOUNT, NO_GPU_AMOUNT, 0)


def gpu_growth(
    cache: Cache, request: AdmissionRequest, old: Manifest | None, new: Manifest | None
) -> Iterator[Finding]:
    """A running pod may not grow beyond the GPU quota of its namespace."""
    if request.kind != "Pod" or old is None or new is None or not node_of(request.old):
        return
    found = list(cache.index.find((quotas.KIND, new.namespace)))
    if not found:
        return
    namespace, known = new.namespace, GpuQuotas()
    try:
        before, after = _request(cache, old, found[-1]), _request(cache, new, found[-1])
        known.set(quotas.quota(found[-1]))
        known.set_used(namespace, _used_by_others(found[-1], before))
    except InputError:
        return  # what cannot be read is refused where it is read
    had = {each.bound: each.requested for each in known.exceeded(namespace, [before])}
    for each in known.exceeded(namespace, [after]):
        if each.requested > had.get(each.bound, 0):
            yield new.finding("error", f"metadata.annotations[{PREFIX}*]", each.numbers)


def _request(cache: Cache, manifest: Manifest, quota: Manifest) -> DeviceRequest:
    """What the annotations of a pod ask for of each of its devices."""
    written = read_request(manifest.metadata, manifest)
    if written is None:
        return _NOTHING
    ask = gpu_ask(written, (), cache.cards.default, quotas.defaults(quota))
    assert ask is not None
    return DeviceRequest(ask.request, ask.limit, ask.count)


def _used_by_others(quota: Manifest, own: DeviceRequest) -> GpuUsage:
    """What other pods of the namespace use, by the status of its quota."""
    content = quota.content
    assert isinstance(content, GpuQuotaWire)
    used = (content.status or {}).get("used") or {}
    requests, limits = (
        amounts.amount(_figures(used, word), quota, f"status.used.{word}")
        for word in ("requests", "limits")
    )
    workers = used.get("workers")
    return GpuUsage(
        _less(requests, own.request, own.devices),
        _less(limits, own.limit, own.devices),
        max(workers - 1, 0) if isinstance(workers, int) else 0,
    )


def _figures(used: Mapping[str, Any], word: str) -> GpuFigures:
    written = used.get(word) or {}
    return msgspec.convert(written, GpuFigures) if isinstance(written, dict) else GpuFigures()


def _less(total: GpuAmount, each: GpuAmount, devices: int) -> GpuAmount:
    """The total without so much of each device; not below 0, if the status is not up to date."""
    pairs = zip(total, each, strict=True)
    return GpuAmount(*(max(has - amount * devices, 0) for has, amount in pairs))
