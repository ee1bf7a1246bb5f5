"""Clusters that hold given objects, and writes to them, as short as a table needs them."""

import copy
from typing import Any

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import read
from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.review import AdmissionRequest, Operation, Verdict
from aliquot.kube.webhook.verdict import judge
from tests.build import manifests
from tests.build.manifests import KOORDINATOR


def cluster(
    *objects: Body, policy: str | None = None, settings: Configuration | None = None
) -> Cache:
    cache = Cache(settings or Configuration(), policy)
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


def member(name: str, parent: str = "", is_parent: bool = False, **more: Any) -> Body:
    """A quota of a tree, in the namespace that is called like it."""
    labels = {f"{KOORDINATOR}is-parent": str(is_parent).lower(), **more.pop("labels", {})}
    if parent:
        labels[f"{KOORDINATOR}parent"] = parent
    low, high = {"cpu": more.pop("low", 1)}, {"cpu": more.pop("high", 100)}
    path = f"{more.pop('namespace', name)}/{name}"
    return manifests.quota(path, low, high, labels=labels, **more)


def composite(name: str, *namespaces: str, **spec: Any) -> Body:
    """A quota of these namespaces that guarantees one CPU unless its spec says otherwise."""
    return manifests.composite(f"ops/{name}", list(namespaces), {"cpu": 1}, **spec)


def named(quota: str) -> Body:
    """The labels of a pod that names a quota."""
    return {f"{KOORDINATOR}name": quota}
