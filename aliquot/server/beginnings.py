"""What the status of a new object is: not what was sent, where somebody else is to write it."""

from aliquot.dialects.documents import Body
from aliquot.server.kind import Kind


def begin(kind: Kind, body: Body) -> None:
    """Write the first status, and what else a kind begins with."""
    if kind.word == "Node":
        body.setdefault("status", {})
        return
    if kind.has_status:
        body.pop("status", None)
    if kind.word == "Namespace":
        body["spec"] = {"finalizers": ["kubernetes"]}
        body["status"] = {"phase": "Active"}
    elif kind.word == "Pod":
        body["status"] = {"phase": "Pending", "qosClass": quality(body)}
    elif kind.word in ("Deployment", "ReplicaSet", "Job", "ResourceQuota", "PodDisruptionBudget"):
        body["status"] = _FIRST.get(kind.word, {}).copy()


_FIRST: dict[str, Body] = {
    "ReplicaSet": {"replicas": 0},
    "PodDisruptionBudget": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
}


def quality(pod: Body) -> str:
    """The quality of service of a pod: Guaranteed, Burstable or BestEffort."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = [each.get("resources") or {} for each in containers]
    if not any(_counted(each.get(word)) for each in asked for word in ("requests", "limits")):
        return "BestEffort"
    guaranteed = all(_guaranteed(each) for each in asked)
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(amounts: Body | None) -> Body:
    return {key: value for key, value in (amounts or {}).items() if key in ("cpu", "memory")}


def _guaranteed(resources: Body) -> bool:
    limits = _counted(resources.get("limits"))
    return limits.keys() == {"cpu", "memory"} and _counted(resources.get("requests")) == limits
