"""The engine's values, and the events that set them, with plain defaults.

What a pod requests, a node has or a quota bounds is given as amounts by resource name, or as a
number of GPUs (`nvidia.com/gpu`). What a builder does not name goes to the value as it is.
"""

from typing import Any

from aliquot.engine import Amounts, Gang, Node, Pod, Quota, Shape
from aliquot.engine.model.events import DeviceSet, GangSet, GpuQuotaSet, NodeSet, PodSet, QuotaSet
from aliquot.engine.model.gpu import Device, GpuAmount, GpuAsk, GpuBound, GpuQuota

GPU = "nvidia.com/gpu"
GIB = 2**30


def amounts(gpu: int | None = None, **more: int | None) -> Amounts:
    """Amounts by resource name, in order; a resource that is None is left out."""
    named = {GPU: gpu, **more}
    return tuple(sorted((name, amount) for name, amount in named.items() if amount is not None))


def _amounts(given: int | Amounts) -> Amounts:
    return ((GPU, given),) if isinstance(given, int) else given


def node(name: str, has: int | Amounts, *, pods: int = 100, **more: Any) -> Node:
    """A node that holds up to `pods` pods."""
    return Node(name, (*_amounts(has), ("pods", pods)), **more)


def quota(name: str, low: int | Amounts = (), high: int | Amounts = (), **more: Any) -> Quota:
    """A quota of the namespace that its name (`namespace/name`, or one word) begins with."""
    more.setdefault("namespaces", frozenset({name.partition("/")[0]}))
    return Quota(name, _amounts(low), _amounts(high), **more)


def pod(
    name: str,
    asks: int | Amounts = 1,
    namespace: str = "a",
    *,
    uid: str = "",
    shape: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """A pod whose uid is its name; `shape` holds further fields of its Shape."""
    requests = Shape((*_amounts(asks), ("pods", 1)), **(shape or {}))
    return Pod(uid or name, namespace, name, requests, **more)


def gang(name: str, members: int = 1, **more: Any) -> Gang:
    """A gang that starts with at least so many members."""
    return Gang(name, members, **more)


def node_set(name: str, has: int | Amounts, **more: Any) -> NodeSet:
    """The event of a node, as `node` builds it."""
    return NodeSet(node(name, has, **more))


def quota_set(
    name: str, low: int | Amounts = (), high: int | Amounts = (), **more: Any
) -> QuotaSet:
    """The event of a quota, as `quota` builds it."""
    return QuotaSet(quota(name, low, high, **more))


def pod_set(name: str, asks: int | Amounts = 1, namespace: str = "a", **more: Any) -> PodSet:
    """The event of a pod, as `pod` builds it."""
    return PodSet(pod(name, asks, namespace, **more))


def gang_set(name: str, members: int = 1, **more: Any) -> GangSet:
    """The event of a gang, as `gang` builds it."""
    return GangSet(gang(name, members, **more))


def gpu_amount(tflops: int, vram: int) -> GpuAmount:
    """Compute in TFLOPS and memory in GiB."""
    return GpuAmount(1000 * tflops, vram * GIB)


def gpu_ask(tflops: int, vram: int, count: int = 1, **more: Any) -> GpuAsk:
    """A request of so much on each of `count` GPUs, which is its limit too."""
    each = gpu_amount(tflops, vram)
    return GpuAsk(each, each, count=count, **more)


def device_set(
    name: str, node: str = "n", tflops: int = 100, vram: int = 80, **more: Any
) -> DeviceSet:
    """The event of a GPU device on a node."""
    return DeviceSet(Device(name, node, gpu_amount(tflops, vram), **more))


def gpu_quota_set(
    requests: int = 200, limits: int = 200, workers: int = 10, **more: Any
) -> GpuQuotaSet:
    """The event of the quota `team/q` on GPUs: bounds on TFLOPS, and on the number of pods."""
    bounds = (GpuBound(1000 * requests), GpuBound(1000 * limits), workers)
    return GpuQuotaSet(GpuQuota("team", "q", *bounds, **more))
