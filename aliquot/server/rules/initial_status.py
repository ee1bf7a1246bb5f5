"""The initial status of a new object: written here, not taken from the request."""

from aliquot.dialects.core.labels import JOB_UID
from aliquot.dialects.workloads import job_labels
from aliquot.json import Body, fresh
from aliquot.server.kinds import definitions
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.pod_defaults import merge_label_keys


def drop_status(kind: Kind, body: Body) -> None:
    """Drop the status that a request sent; but a Node is created with its own."""
    if kind.has_status and kind.unique_name != "Node":
        body.pop("status", None)


def set_initial_status(kind: Kind, body: Body) -> None:
    """Write the initial status of a kind, and the spec fields that its server sets."""
    if kind.unique_name == "Node":
        body.setdefault("status", {})
    elif kind.unique_name == "Namespace":
        body["spec"] = {"finalizers": ["kubernetes"]}
        body["status"] = {"phase": "Active"}
    elif kind.unique_name == "CustomResourceDefinition":
        definitions.set_initial_status(body)
    elif kind.unique_name == "Pod":
        _set_gated(body)
        merge_label_keys(body)
    elif kind.unique_name == "Job":
        _set_selector(body)
    elif kind.unique_name in _INITIAL:
        body["status"] = fresh(_INITIAL[kind.unique_name])


_INITIAL: dict[str, Body] = {
    "CronJob": {},
    "DaemonSet": dict.fromkeys(
        (
            *("currentNumberScheduled", "desiredNumberScheduled"),
            *("numberMisscheduled", "numberReady"),
        ),
        0,
    ),
    "Deployment": {},
    "HorizontalPodAutoscaler": {"currentMetrics": None, "desiredReplicas": 0},
    "Ingress": {"loadBalancer": {}},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "ResourceQuota": {},
    "Service": {"loadBalancer": {}},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "VolumeAttachment": {"attached": False},
    "PodDisruptionBudget": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
}


def _set_gated(pod: Body) -> None:
    """A pod with scheduling gates has the condition SchedulingGated."""
    if (pod.get("spec") or {}).get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        pod.setdefault("status", {})["conditions"] = [condition]


def _set_selector(job: Body) -> None:
    """A Job selects pods by its uid; the label is written into its template."""
    job["status"] = {}
    metadata, spec = job["metadata"], job.setdefault("spec", {})
    own_labels = job_labels(job)
    if not own_labels:
        return
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    for labelled in (template, metadata):
        labelled["labels"] = {**(labelled.get("labels") or {}), **own_labels}
    spec["selector"] = {"matchLabels": {JOB_UID: metadata["uid"]}}
