"""Objects for stories, as short as a story tells them: names are `namespace/name`."""

from typing import Any

from aliquot.dialects.documents import Body

GPU = "nvidia.com/gpu"


def node(name: str, gpu: int = 0, cpu: int = 96, labels: dict[str, str] | None = None) -> Body:
    """A node that is ready."""
    has = {"cpu": str(cpu), "memory": "1Ti", "pods": "110"} | ({GPU: str(gpu)} if gpu else {})
    named = {"kubernetes.io/hostname": name, **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": named},
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    path: str,
    gpu: int = 0,
    cpu: int | str = 0,
    *,
    asks: dict[str, str] | None = None,
    scheduler: str = "aliquot",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Body:
    """A pod of one container. What else is named goes to its spec."""
    amounts = {**({GPU: str(gpu)} if gpu else {}), **({"cpu": str(cpu)} if cpu else {})}
    amounts |= asks or {}
    container = {"name": "main", "image": "image.invalid/main:1"}
    resources = {"requests": amounts, "limits": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _about(path, labels, annotations),
        "spec": {
            "schedulerName": scheduler,
            "containers": [{**container, "resources": resources}],
            **spec,
        },
    }


def quota(
    path: str,
    min: dict[str, Any] | None = None,
    max: dict[str, Any] | None = None,
    *,
    group: str = "scheduling.x-k8s.io",
    kind: str = "ElasticQuota",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Body:
    """An ElasticQuota, of whichever group."""
    bounds = {"min": _amounts(min), "max": _amounts(max)}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": _about(path, labels, annotations),
        "spec": {**{word: said for word, said in bounds.items() if said is not None}, **spec},
    }


def queue(name: str, weight: int = 1, **spec: Any) -> Body:
    """A queue of Volcano."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, **spec},
    }


def group(path: str, members: int, **spec: Any) -> Body:
    """A PodGroup of Volcano."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": _about(path),
        "spec": {"minMember": members, **spec},
    }


def budget(path: str, **spec: Any) -> Body:
    """A disruption budget over the pods labelled `app: NAME`."""
    selector = {"matchLabels": {"app": path.partition("/")[2]}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _about(path),
        "spec": {"selector": selector, **spec},
    }


def priority_class(name: str, value: int, **fields: Any) -> Body:
    """A class of priority."""
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**about, "metadata": {"name": name}, "value": value, **fields}


def _about(
    path: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> Body:
    namespace, _, name = path.rpartition("/")
    about: Body = {"name": name}
    for key, said in (("namespace", namespace), ("labels", labels), ("annotations", annotations)):
        if said:
            about[key] = said
    return about


def _amounts(said: dict[str, Any] | None) -> Body | None:
    """Amounts; `gpu` is short for the resource."""
    if said is None:
        return None
    return {GPU if name == "gpu" else name: str(amount) for name, amount in said.items()}
