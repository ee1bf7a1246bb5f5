"""Short ways to write manifests in tests."""

from typing import Any

Body = dict[str, Any]


def node(name: str = "n", **has: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": keys(has or {"cpu": 8, "gpu": 8})},
    }


def quota(
    namespace: str,
    low: Body,
    high: Body | None = None,
    name: str = "quota",
    group: str = "scheduling.x-k8s.io",
) -> Body:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"min": keys(low), **({"max": keys(high)} if high is not None else {})},
    }


def composite(
    path: str,
    namespaces: Any,
    low: Body,
    high: Body | None = None,
    group: str = "nos.nebuly.com",
) -> Body:
    namespace, name = path.split("/")
    body = quota(namespace, low, high, name, group)
    spec = {"namespaces": namespaces, **body["spec"]}
    return {**body, "kind": "CompositeElasticQuota", "spec": spec}


KOORDINATOR = "quota.scheduling.koordinator.sh/"


def tree_quota(
    path: str, low: Body | None = None, high: Body | None = None, group: str = "", **said: Any
) -> Body:
    """A quota of a tree: `parent`, `is_parent`, `lend`, `weight`, `namespaces`, `tree_id`."""
    namespace, name = path.split("/")
    body = quota(namespace, low or {}, high, name, group or "scheduling.sigs.k8s.io")
    if "lend" in said:
        said["allow-lent-resource"] = said.pop("lend")
    if "weight" in said:
        said["shared-weight"] = said.pop("weight")
    for key, value in said.items():
        key = key.replace("_", "-")
        word = "annotations" if key in ("shared-weight", "namespaces") else "labels"
        body["metadata"].setdefault(word, {})[KOORDINATOR + key] = value
    return body


def labelled(body: Body, **said: Any) -> Body:
    """The same, with Koordinator's labels: `name`, `preemptible`."""
    labels = {KOORDINATOR + key: value for key, value in said.items()}
    metadata = {**body["metadata"], "labels": {**body["metadata"].get("labels", {}), **labels}}
    return {**body, "metadata": metadata}


def pod(path: str, asks: Body | None = None, annotations: Body | None = None, **spec: Any) -> Body:
    namespace, name = path.split("/")
    metadata: Body = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = {f"sim.aliquot.dev/{k}": v for k, v in annotations.items()}
    containers = [{"name": "main", "resources": {"requests": keys(asks or {})}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def workload(kind: str, path: str, asks: Body, **spec: Any) -> Body:
    inner = pod(path, asks)
    group = "batch/v1" if kind == "Job" else "apps/v1"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": inner["spec"]}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": inner["metadata"],
        "spec": {"template": template, **spec},
    }


def timeline(*steps: Body) -> Body:
    return {
        "apiVersion": "aliquot.dev/v1alpha1",
        "kind": "Timeline",
        "metadata": {"name": "changes"},
        "steps": list(steps),
    }


def keys(amounts: Body) -> Body:
    return {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in amounts.items()}
