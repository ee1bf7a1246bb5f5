"""The objects of a measured cluster: nodes, quotas of a few teams, and pods of mixed sizes.

Twenty pods for each node always fit, however they are spread: pods that cannot start would make
schedulers do different work.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from aliquot.json import Body
from aliquot.server.controllers import simulated_nodes

MOST_FOR_A_NODE = 20
"""Pods that fit for each node: the ten sizes twice are 55 of 96 cpu and 6 of 8 GPUs."""
TEAMS = 4
_GPU = "nvidia.com/gpu"
_SIZES = (
    *(("2", "8Gi", 0), ("1", "2Gi", 0), ("4", "16Gi", 1), ("2", "4Gi", 0), ("500m", "1Gi", 0)),
    *(("8", "32Gi", 2), ("1", "4Gi", 0), ("4", "8Gi", 0), ("2", "2Gi", 0), ("3", "6Gi", 0)),
)
"""cpu, memory and GPUs, in equal numbers."""


def nodes(count: int) -> list[Body]:
    """Nodes of 96 cpu and 8 GPUs; without the annotation that simulates their kubelets."""
    return simulated_nodes.nodes(f"{count}x8", simulated_nodes.MODEL)


def teams() -> list[str]:
    """The namespaces that pods are in."""
    return [f"team-{number}" for number in range(TEAMS)]


def namespace(name: str) -> Body:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def quota(team: str, count: int) -> Body:
    """The quota of a team: min is its part of the nodes, max all of them."""
    low = {"cpu": str(96 * count // TEAMS), _GPU: str(8 * count // TEAMS)}
    high = {"cpu": str(96 * count), _GPU: str(8 * count)}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": team},
        "spec": {"min": low, "max": high},
    }


def pods(count: int, scheduler_name: str, first: int = 0) -> Iterator[Body]:
    """So many pods of this scheduler, numbered from `first`."""
    for number in range(first, first + count):
        yield _pod(number, scheduler_name)


def running(pod: Body, node: str) -> tuple[Body, Body]:
    """The pod as a bound one, and the status that its kubelet writes."""
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    status = simulated_nodes.started(
        {**bound, "status": {"conditions": [scheduled]}}, now, "10.0.0.1"
    )
    return bound, {"status": status}


def _pod(number: int, scheduler_name: str) -> Body:
    cpu, memory, gpus = _SIZES[number % len(_SIZES)]
    asks: Body = {"cpu": cpu, "memory": memory, **({_GPU: str(gpus)} if gpus else {})}
    team = f"team-{number // len(_SIZES) % TEAMS}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": team,
            "labels": {"app": f"app-{number % 100}", "team": team},
        },
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/train:1",
                    "command": ["python", "-m", "train"],
                    "env": [{"name": "STEPS", "value": "1000"}],
                    "resources": {"requests": asks, "limits": dict(asks)},
                }
            ],
        },
    }
