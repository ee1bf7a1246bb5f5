"""Objects for stories, as short as a story tells them: names are `namespace/name`.

Those of the designs are written as in the tests of the commands; these here are what a real API
server wants to know more of.
"""

from typing import Any

from aliquot.json import Body

GPU = "nvidia.com/gpu"


def node(
    name: str,
    gpu: int = 0,
    cpu: int = 96,
    more: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> Body:
    """A node that is ready, with what else it has."""
    has = {"cpu": str(cpu), "memory": "1Ti", "pods": "110"} | ({GPU: str(gpu)} if gpu else {})
    has |= more or {}
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
