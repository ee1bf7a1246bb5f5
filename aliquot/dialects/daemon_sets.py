"""DaemonSets: the nodes on which one has a pod, and that pod; as kube-controller-manager has it.

The simulation and the embedded API server both ask here.
"""

from dataclasses import dataclass, replace

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.nodes import node as read_node
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pods import shape
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.workloads import new_pod
from aliquot.engine import Node, NodeConstraints, node_refusal
from aliquot.errors import InputError
from aliquot.json import Body

_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    *(("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule")),
    *(("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule")),
    ("unschedulable", "NoSchedule"),
)
"""The taints that every pod of a DaemonSet tolerates, with their effects."""
_NETWORK = ("network-unavailable", "NoSchedule")
"""Tolerated as well by pods that use the node's own network."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class Placement:
    """Whether a DaemonSet has a pod on a node: whether it gets one, and whether it keeps one."""

    starts: bool
    stays: bool


def daemon_pod(owner: Body, node: str, **names: str) -> Body:
    """The pod of a DaemonSet for a node: with its affinity and its tolerations."""
    pod = new_pod(owner, owner["spec"]["template"], **names)
    spec = dict(pod["spec"])
    spec["affinity"] = _pinned(spec.get("affinity") or {}, node)
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_tolerations(spec)]
    return {**pod, "spec": spec}


def node_of(pod: Body) -> str:
    """The node that a pod of a DaemonSet runs on or waits for; empty if it names none."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each.get("key") == _NAME and each.get("values"):
                return str(each["values"][0])
    return ""


def constraints(owner: Body) -> NodeConstraints | None:
    """Where the pods of a DaemonSet may run before they are pinned; None if unreadable."""
    pod = new_pod(owner, owner["spec"]["template"], name="pod", namespace="default")
    spec = dict(pod["spec"])
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_tolerations(spec)]
    try:
        manifest = read(Document("", {**pod, "spec": spec}))
        assert manifest is not None
        assert isinstance(manifest.content, PodWire)
        return shape(manifest.content.spec, None, manifest, Cards()).constraints
    except InputError:
        return None


def placement(where: NodeConstraints, node: Node) -> Placement:
    """Whether a DaemonSet with these constraints has a pod on this node."""
    evicting = tuple(taint for taint in node.taints if taint.effect == "NoExecute")
    starts = node_refusal(where, node) is None
    return Placement(starts, starts or node_refusal(where, replace(node, taints=evicting)) is None)


def readable_node(manifest: Manifest) -> Node | None:
    """A node as the engine's; None if it cannot be read."""
    try:
        return read_node(manifest, Cards())
    except InputError:
        return None


def _pinned(affinity: Body, node: str) -> Body:
    """The affinity with this node required in place of its terms, which the node has met."""
    pin = [{"key": _NAME, "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": pin}]}
    return {
        **affinity,
        "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required},
    }


def _tolerations(spec: Body) -> list[Body]:
    taints = (*_TOLERATED, _NETWORK) if spec.get("hostNetwork") else _TOLERATED
    return [
        {"key": f"{_PREFIX}{key}", "operator": "Exists", "effect": effect} for key, effect in taints
    ]
