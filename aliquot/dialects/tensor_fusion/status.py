"""The statuses of GPUResourceQuotas and GPUs, as TensorFusion writes them, and events.

The figures of a quota (`used`, `available_percent`, `condition`) stand apart, because the outcome
of a simulation shows them as well.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from aliquot.dialects.core.manifest import TENSOR_FUSION, Manifest
from aliquot.dialects.core.times import moment
from aliquot.dialects.tensor_fusion import gpus
from aliquot.dialects.tensor_fusion.amounts import write
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.dialects.tensor_fusion.quotas import KIND
from aliquot.engine import Condition, Device, GpuAmount, GpuAsk, GpuQuotaSummary, ratio
from aliquot.json import Body

_NOT_KNOWN = ("runningApps",)
"""Fields that only the GPU's node knows; they are dropped, because they would be stale."""


def quota(manifest: Manifest, summary: GpuQuotaSummary, conditions: Conditions) -> Body:
    """A quota with what is used, what is left, and its conditions with their times."""
    status = {
        "used": used(summary),
        "availablePercent": available_percent(summary),
        "conditions": [
            {
                **condition(each),
                "lastTransitionTime": moment(conditions.since(summary, each.type)),
            }
            for each in summary.conditions
        ],
        "lastUpdateTime": moment(conditions.updated(summary)),
    }
    return {**manifest.body, "status": {**(manifest.body.get("status") or {}), **status}}


def events(conditions: Conditions) -> Iterator[Body]:
    """An event for each time that a quota crossed a bound or threshold."""
    for number, each in enumerate(conditions.crossings):
        about = {"kind": KIND, "namespace": each.namespace, "name": each.name}
        yield {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{each.name}.{number:x}", "namespace": each.namespace},
            "involvedObject": {"apiVersion": f"{TENSOR_FUSION}/v1", **about},
            "type": "Warning" if each.condition.status else "Normal",
            "reason": each.condition.reason,
            "message": each.condition.message,
            "firstTimestamp": moment(each.at),
            "lastTimestamp": moment(each.at),
            "count": 1,
            "source": {"component": "aliquot"},
        }


def gpu(manifest: Manifest, device: Device, asks: Iterable[GpuAsk]) -> Body:
    """A GPU with what of it is available."""
    written = manifest.body.get("status") or {}
    kept = {word: value for word, value in written.items() if word not in _NOT_KNOWN}
    return {**manifest.body, "status": {**kept, "available": write(available(device, asks))}}


def available(device: Device, asks: Iterable[GpuAsk]) -> GpuAmount:
    """What is left of a GPU beside these pods and those of others."""
    taken = gpus.taken(asks, device.capacity)
    rows = zip(device.capacity, device.used_elsewhere, taken, strict=True)
    return GpuAmount(*(max(has - others - ours, 0) for has, others, ours in rows))


def used(summary: GpuQuotaSummary) -> Body:
    """What the pods of the quota's namespace use."""
    return {
        "requests": write(summary.requests),
        "limits": write(summary.limits),
        "workers": summary.workers,
    }


def available_percent(summary: GpuQuotaSummary) -> dict[str, str]:
    """What is left of each bound, to two digits; `100` where there is none."""
    return {word: _percent(left) for word, left in summary.available_percent.items()}


def condition(each: Condition) -> Body:
    """A condition without its time."""
    return {
        "type": each.type,
        "status": str(each.status),
        "reason": each.reason,
        "message": each.message,
    }


def _percent(left: Fraction | None) -> str:
    if left is None:
        return "100"
    return ratio.percent(left / 100, digits=2)
