"""What the status of a new object is: not what was sent, where somebody else is to write it."""

from aliquot.dialects.documents import Body
from aliquot.server import definitions
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
    elif kind.word == "CustomResourceDefinition":
        definitions.begin(body)
    elif kind.word == "Pod":
        body["status"] = {"phase": "Pending", "qosClass": quality(body)}
    elif kind.word == "Job":
        _select_own(body)
    elif kind.word in ("Deployment", "ReplicaSet", "ResourceQuota", "PodDisruptionBudget"):
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


def _select_own(job: Body) -> None:
    """A job selects the pods that carry its uid, which its template is made to give them."""
    job["status"] = {}
    about, spec = job["metadata"], job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    mine = {
        "batch.kubernetes.io/controller-uid": about["uid"],
        "batch.kubernetes.io/job-name": about.get("name", ""),
        "controller-uid": about["uid"],
        "job-name": about.get("name", ""),
    }
    template["labels"] = {**(template.get("labels") or {}), **mine}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": about["uid"]}}


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
