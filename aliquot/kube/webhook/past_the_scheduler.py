"""Writes that would use a quota without asking it: pods that come with a node, and resizes.

The scheduler counts both, and takes back what is above max for a claim that is owed it. Here they
are refused before they happen. Pods of nodes themselves (mirror pods) are left alone: a kubelet
shows with them what it runs anyway. DaemonSets name a node by affinity, and so are scheduled.
"""

from collections.abc import Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.engine import quantity
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.request_objects import checked, read_object
from aliquot.kube.webhook.review import ALLOWED, AdmissionRequest, Verdict
from aliquot.kube.webhook.usage import owner_of, quota_of

RESIZE = "resize"
"""The subresource of pods by which their resources are changed while they run."""
_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of the pods by which a kubelet shows its static pods."""


def node_named(cache: Cache, request: AdmissionRequest, new: Manifest | None) -> Iterator[Finding]:
    """A pod of a quota may not be created with a node."""
    node = node_of(request.new)
    if new is None or new.kind != "Pod" or not node:
        return
    if _MIRROR in (new.metadata.annotations or {}):
        return
    index = cache.quota_index
    quota = quota_of(owner_of(new), index, cache.objects)
    if quota is None or index.quotas[quota].fallback or index.quotas[quota].unshared:
        return
    problem = (
        f"is {node}, so quota {quota} would not be asked; leave it empty, and choose nodes by "
        "nodeSelector or node affinity"
    )
    yield new.finding("error", "spec.nodeName", problem)


def judge_resize(cache: Cache, request: AdmissionRequest) -> Verdict:
    """A resize must not raise a quota, or one above it, beyond its max."""
    new = checked(read_object(request.new)).manifest
    if new is None or not node_of(request.new):
        return ALLOWED
    try:
        wants, owner = cache.usage.requests(new), owner_of(new)
    except InputError:
        return ALLOWED  # the API server says what is wrong with it
    has, index = cache.usage.of_pod(new.key), cache.quota_index
    grows = {name for name, amount in wants.items() if amount > has.get(name, 0)}
    quota = quota_of(owner, index, cache.objects)
    if quota is None or not grows:
        return ALLOWED
    used = cache.usage.by_quota(index, cache.objects)
    for each in index.ancestry(quota):
        for name, most in each.max:
            if name not in grows:
                continue
            before = used.get(each.name, {}).get(name, 0)
            if before - has.get(name, 0) + wants[name] > most:
                return Verdict(_refusal(each.name, name, most, before, has, wants))
    return ALLOWED


def _refusal(
    quota: str, name: str, most: int, used: int, has: dict[str, int], wants: dict[str, int]
) -> str:
    amounts = (quantity.text(name, each) for each in (most, used, has.get(name, 0), wants[name]))
    high, now, before, after = amounts
    return (
        f"quota {quota}: max {high} {name}, used {now}; the pod has {before} and asks {after}; "
        "ask for less, or have max raised"
    )


def node_of(body: Body | None) -> str:
    """The node that a pod is bound to, or names; empty if there is none."""
    spec = (body or {}).get("spec")
    node = spec.get("nodeName") if isinstance(spec, dict) else None
    return node if isinstance(node, str) else ""
