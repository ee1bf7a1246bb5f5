"""Random small clusters as manifests, for every policy: pods that run, and pods that wait."""

from random import Random
from typing import Any

from aliquot.json import Body

GPU = "nvidia.com/gpu"
POLICIES = ("capacity", "fair", "hierarchy", "queues")
_TREE = "quota.scheduling.koordinator.sh/"


def cluster(rng: Random, policy: str) -> list[Body]:
    """Nodes, quotas of two or three teams, pods on nodes where there is room, others wait."""
    teams = [f"team-{letter}" for letter in "abc"[: rng.randint(2, 3)]]
    nodes = [_node(rng, f"node-{number}") for number in range(rng.randint(1, 3))]
    quotas = _quotas(rng, policy, teams)
    return [*nodes, *quotas, *_pods(rng, policy, teams, nodes), *_classes(rng)]


def _node(rng: Random, name: str) -> Body:
    has = {"cpu": "8", GPU: str(rng.choice([2, 4, 4, 8])), "pods": "10"}
    labels = {"zone": rng.choice(["x", "y"])}
    taints = [{"key": "own", "effect": "NoSchedule"}] if rng.random() < 0.15 else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": has, "capacity": has},
    }


def _classes(rng: Random) -> list[Body]:
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
    return [{**body, "metadata": {"name": "high"}}]


def _quotas(rng: Random, policy: str, teams: list[str]) -> list[Body]:
    return [_quota(rng, policy, team) for team in teams]


def _quota(rng: Random, policy: str, team: str) -> Body:
    low = rng.randint(0, 4)
    high = low + rng.randint(0, 4)
    if policy == "queues":
        spec: Body = {"weight": rng.randint(1, 4), "reclaimable": rng.random() < 0.8}
        if rng.random() < 0.4:
            spec["capability"] = {GPU: str(rng.randint(1, 6))}
        if rng.random() < 0.3:
            most = int(spec.get("capability", {}).get(GPU, 4))
            spec["deserved"] = {GPU: str(rng.randint(0, most))}
        version = "scheduling.volcano.sh/v1beta1"
        return {
            "apiVersion": version,
            "kind": "Queue",
            "metadata": {"name": f"q-{team}"},
            "spec": spec,
        }
    bounds = {"min": {GPU: str(low)}, "max": {GPU: str(high)}}
    if rng.random() < 0.3:
        del bounds["max"]
    group = "nos.nebuly.com/v1alpha1" if policy == "fair" else "scheduling.x-k8s.io/v1alpha1"
    metadata: Body = {"name": "quota", "namespace": team}
    if policy == "hierarchy":
        metadata["name"] = f"{team}-quota"
        metadata["labels"] = {f"{_TREE}is-parent": "false"}
    return {"apiVersion": group, "kind": "ElasticQuota", "metadata": metadata, "spec": bounds}


def _pods(rng: Random, policy: str, teams: list[str], nodes: list[Body]) -> list[Body]:
    free = {each["metadata"]["name"]: int(each["status"]["allocatable"][GPU]) for each in nodes}
    found = []
    for number in range(rng.randint(3, 12)):
        size, team = rng.choice([1, 1, 1, 2, 3]), rng.choice(teams)
        pod = _pod(rng, policy, team, number, size)
        there = [name for name, left in free.items() if left >= size]
        if there and rng.random() < 0.7:
            node = rng.choice(there)
            free[node] -= size
            pod["spec"]["nodeName"] = node
        found.append(pod)
    return found


def _pod(rng: Random, policy: str, team: str, number: int, size: int) -> Body:
    resources = {"limits": {GPU: str(size)}}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "train", "resources": resources}]
    }
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"zone": rng.choice(["x", "y"])}
    if rng.random() < 0.1:
        spec["preemptionPolicy"] = "Never"
    if rng.random() < 0.15:
        spec["priorityClassName"] = "high"
    metadata: Body = {"name": f"pod-{number}", "namespace": team}
    if policy == "queues":
        metadata["annotations"] = {"scheduling.volcano.sh/queue-name": f"q-{team}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
