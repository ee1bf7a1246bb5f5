"""What the status of a new object is: not what was sent, where somebody else is to write it."""

from aliquot.json import Body
from aliquot.server.kinds import definitions
from aliquot.server.kinds.kind import Kind


def strip(kind: Kind, body: Body) -> None:
    """Drop a status that somebody else is to write; a node comes with its own."""
    if kind.has_status and kind.word != "Node":
        body.pop("status", None)


def begin(kind: Kind, body: Body) -> None:
    """Write the first status, and what else a kind begins with."""
    if kind.word == "Node":
        body.setdefault("status", {})
    elif kind.word == "Namespace":
        body["spec"] = {"finalizers": ["kubernetes"]}
        body["status"] = {"phase": "Active"}
    elif kind.word == "CustomResourceDefinition":
        definitions.begin(body)
    elif kind.word == "Pod":
        _gated(body)
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


def _gated(pod: Body) -> None:
    """A pod that is not to be scheduled yet says so."""
    if (pod.get("spec") or {}).get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        pod.setdefault("status", {})["conditions"] = [condition]


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
    for labelled in (template, about):
        labelled["labels"] = {**(labelled.get("labels") or {}), **mine}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": about["uid"]}}
