"""Simulated nodes: their manifests, and the status of their pods at each stage. Pure."""

import re
from typing import Any

from aliquot.dialects.schemas import kubernetes
from aliquot.errors import InputError
from aliquot.json import Body

SIMULATED = "sim.aliquot.dev/simulated"
"""The annotation of nodes whose kubelet is simulated."""
DURATION = "sim.aliquot.dev/duration"
"""The annotation of pods that complete after this time."""
MODEL = "NVIDIA-A100-SXM4-80GB"
"""The GPU model of simulated nodes unless another is chosen."""
_COUNTS = re.compile(r"([0-9]{1,5})(?:x([0-9]{1,3}))?")
_MEMORY = re.compile(r"([0-9]+)GB")


def nodes(counts: str, model: str) -> list[Body]:
    """Equal nodes: `8x4` is eight nodes of four GPUs each; `8` is eight without any."""
    match = _COUNTS.fullmatch(counts)
    if match is None:
        raise InputError("--nodes", "", f"{counts!r} is not like 8x4: eight nodes of four GPUs")
    gpus = int(match[2] or 0)
    return [_node(f"node-{number}", gpus, model) for number in range(int(match[1]))]


def _node(name: str, gpus: int, model: str) -> Body:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    has: Body = {"cpu": "96", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "110"}
    if gpus:
        has["nvidia.com/gpu"] = str(gpus)
        labels |= {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(gpus)}
        if found := _MEMORY.search(model):
            labels["nvidia.com/gpu.memory"] = str(int(found[1]) * 1024)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": has, "allocatable": dict(has)},
    }


def alive(node: Body, now: str) -> Body:
    """The node as its kubelet first reports it."""
    status = node.setdefault("status", {})
    metadata = node["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), SIMULATED: "true"}
    status["conditions"] = [
        {
            "type": kind,
            "status": value,
            "reason": reason,
            "message": "simulated",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, value, reason in (
            ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ("Ready", "True", "KubeletReady"),
        )
    ]
    status.setdefault("addresses", [{"type": "Hostname", "address": metadata["name"]}])
    status["nodeInfo"] = dict.fromkeys(_INFO, "simulated") | {
        "operatingSystem": "linux",
        "architecture": "amd64",
        "kubeletVersion": f"v{kubernetes.version()}.0",
    }
    status.setdefault("allocatable", dict(status.get("capacity") or {}))
    return node


_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def is_simulated(node: Body) -> bool:
    """Is the kubelet of this node simulated?"""
    return (node["metadata"].get("annotations") or {}).get(SIMULATED) == "true"


def started(pod: Body, now: str, address: str) -> Body:
    """The status of a pod that runs."""
    status = dict(pod.get("status") or {})
    containers = [
        _container(each, {"running": {"startedAt": now}}, ready=True)
        for each in pod["spec"].get("containers") or ()
    ]
    status |= {
        "phase": "Running",
        "startTime": now,
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": containers,
    }
    status["conditions"] = _conditions(status, now, "True")
    return status


def ended(pod: Body, now: str) -> Body:
    """The status of a pod that has completed."""
    status = dict(pod.get("status") or {})
    began = status.get("startTime", now)
    over = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": now}
    status["phase"] = "Succeeded"
    status["containerStatuses"] = [
        _container(each, {"terminated": over}, ready=False)
        for each in pod["spec"].get("containers") or ()
    ]
    status["conditions"] = _conditions(status, now, "False", "PodCompleted")
    return status


def _container(container: Body, state: Any, ready: bool) -> Body:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "lastState": {},
        "state": state,
    }


def _conditions(status: Body, now: str, ready: str, reason: str = "") -> list[Body]:
    ours = ("Initialized", "Ready", "ContainersReady")
    kept = [each for each in status.get("conditions") or () if each.get("type") not in ours]
    made: list[Body] = []
    for word in ours:
        value = "True" if word == "Initialized" else ready
        condition = {"type": word, "status": value, "lastTransitionTime": now}
        made.append({**condition, "reason": reason} if reason else condition)
    return [*made, *kept]
