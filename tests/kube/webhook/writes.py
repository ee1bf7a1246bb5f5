"""Clusters that hold given objects, and writes to them, as short as a table needs them."""

import copy
from typing import Any

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import read
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.review import AdmissionRequest, Operation, Verdict
from aliquot.kube.webhook.verdict import judge

Body = dict[str, Any]
KOORDINATOR = "quota.scheduling.koordinator.sh/"
_CONTAINER = {"name": "c", "image": "i"}


def cluster(*objects: Body, policy: str | None = None) -> Cache:
    cache = Cache(Configuration(), policy)
    for each in objects:
        told = read(Document("cluster", copy.deepcopy(each)))
        assert told is not None
        cache.put(told)
    return cache


def asked(
    operation: Operation, new: Body | None, old: Body | None = None, **more: Any
) -> AdmissionRequest:
    subject = new or old
    assert subject is not None
    metadata = subject["metadata"]
    group = subject["apiVersion"].rpartition("/")[0]
    where = (group, subject["kind"], metadata.get("namespace", ""), metadata.get("name", ""))
    return AdmissionRequest("1", operation, *where, new, old, **more)


def create(cache: Cache, body: Body) -> Verdict:
    return judge(cache, asked("CREATE", body))


def update(cache: Cache, old: Body, new: Body) -> Verdict:
    return judge(cache, asked("UPDATE", new, old))


def delete(cache: Cache, body: Body) -> Verdict:
    return judge(cache, asked("DELETE", None, body))


def changed(body: Body, **spec: Any) -> Body:
    """The same object with another spec."""
    new = copy.deepcopy(body)
    new["spec"] = {**new.get("spec", {}), **spec}
    return new


def marked(body: Body, **labels: str) -> Body:
    """The same object with labels of nobody's."""
    new = copy.deepcopy(body)
    new["metadata"].setdefault("labels", {}).update(labels)
    return new


def thing(kind: str, version: str, name: str, namespace: str = "", **more: Any) -> Body:
    metadata: Body = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    for word in ("labels", "annotations"):
        if word in more:
            metadata[word] = more.pop(word)
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def quota(name: str, namespace: str = "a", low: Any = None, high: Any = None, **more: Any) -> Body:
    spec = {word: value for word, value in (("min", low), ("max", high)) if value is not None}
    version = more.pop("version", "scheduling.x-k8s.io/v1alpha1")
    return thing("ElasticQuota", version, name, namespace, spec=spec, **more)


def member(name: str, parent: str = "", is_parent: bool = False, **more: Any) -> Body:
    """A quota of a tree."""
    labels = {f"{KOORDINATOR}is-parent": str(is_parent).lower(), **more.pop("labels", {})}
    if parent:
        labels[f"{KOORDINATOR}parent"] = parent
    low, high = {"cpu": more.pop("low", 1)}, {"cpu": more.pop("high", 100)}
    return quota(name, more.pop("namespace", name), low, high, labels=labels, **more)


def composite(name: str, *namespaces: str, **spec: Any) -> Body:
    spec = {"namespaces": list(namespaces), "min": {"cpu": 1}, **spec}
    return thing("CompositeElasticQuota", "nos.nebuly.com/v1alpha1", name, "ops", spec=spec)


def queue(name: str, **spec: Any) -> Body:
    return thing("Queue", "scheduling.volcano.sh/v1beta1", name, spec=spec)


def group(name: str, namespace: str = "a", **spec: Any) -> Body:
    return thing("PodGroup", "scheduling.volcano.sh/v1beta1", name, namespace, spec=spec)


def gpu_quota(name: str, namespace: str = "a", **spec: Any) -> Body:
    return thing("GPUResourceQuota", "tensor-fusion.ai/v1", name, namespace, spec=spec)


def pod(name: str = "p", namespace: str = "a", **more: Any) -> Body:
    spec = more.pop("spec", {"containers": [_CONTAINER], "schedulerName": "aliquot"})
    return thing("Pod", "v1", name, namespace, spec=spec, **more)


def named(quota: str) -> Body:
    """The labels of a pod that names a quota."""
    return {f"{KOORDINATOR}name": quota}


def node(name: str = "n", **allocatable: Any) -> Body:
    return thing("Node", "v1", name, status={"allocatable": allocatable})
