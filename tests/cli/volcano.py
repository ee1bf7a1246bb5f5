"""Short ways to write Volcano's objects in tests."""

from typing import Any

from tests.cli.manifests import Body, keys, pod

GROUP = "scheduling.k8s.io/group-name"
QUEUE = "scheduling.volcano.sh/queue-name"


def queue(
    name: str,
    guarantee: Body | None = None,
    capability: Body | None = None,
    state: str | None = None,
    **spec: Any,
) -> Body:
    if guarantee is not None:
        spec["guarantee"] = {"resource": keys(guarantee)}
    if capability is not None:
        spec["capability"] = keys(capability)
    body: Body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
    return body if state is None else {**body, "status": {"state": state}}


def pod_group(path: str, group: str = "scheduling.volcano.sh/v1beta1", **spec: Any) -> Body:
    namespace, name = path.split("/")
    return {
        "apiVersion": group,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def task(name: str | None, replicas: int | None, asks: Body | None = None, **said: Any) -> Body:
    body = {"template": {"spec": pod("x/x", asks)["spec"]}, **said}
    if name is not None:
        body["name"] = name
    return body if replicas is None else {**body, "replicas": replicas}


def gang_job(path: str, *tasks: Body, **spec: Any) -> Body:
    namespace, name = path.split("/")
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"tasks": list(tasks), **spec},
    }


def annotated(body: Body, **said: Any) -> Body:
    """The same, with annotations: `group`, `queue`, or any other by its whole name."""
    long = {"group": GROUP, "queue": QUEUE}
    written = {long.get(key, key): value for key, value in said.items()}
    metadata = body["metadata"]
    metadata = {**metadata, "annotations": {**metadata.get("annotations", {}), **written}}
    return {**body, "metadata": metadata}


def namespace(name: str, **annotations: Any) -> Body:
    return annotated(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, **annotations
    )


def resource_quota(path: str, **hard: Any) -> Body:
    space, name = path.split("/")
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": space},
        "spec": {"hard": hard},
    }
