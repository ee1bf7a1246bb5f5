"""Node constraints: may a pod run on a node at all, whatever it requests?

Node selectors, node affinity, taints and tolerations, with the meaning Kubernetes gives them. Pure
functions of one pod and one node; `preferences` keeps their results.
"""

from collections.abc import Mapping
from enum import IntEnum

from aliquot.engine.model.node import (
    UNSCHEDULABLE_TAINT,
    Node,
    NodeConstraints,
    Taint,
    Toleration,
)
from aliquot.engine.model.selector import Term, requirement_matches, selects


class NodeRefusal(IntEnum):
    """Why a pod may not run on a node; negative, so that it can be stored in a column of scores."""

    GONE = -1
    SELECTOR = -2
    TAINT = -3
    DELETED = -4
    PORT = -5
    VOLUME_RESTRICTION = -6
    VOLUME_LIMIT = -7
    VOLUME_BINDING = -8
    VOLUME_ZONE = -9
    SPREAD = -10
    AFFINITY = -11
    ANTI_AFFINITY = -12
    OTHERS_ANTI_AFFINITY = -13
    UNSCHEDULABLE = -14
    RESOURCES = -15
    TREE = -16


PLUGINS = {
    NodeRefusal.UNSCHEDULABLE: "NodeUnschedulable",
    NodeRefusal.DELETED: "NodeUnschedulable",
    NodeRefusal.TAINT: "TaintToleration",
    NodeRefusal.SELECTOR: "NodeAffinity",
    NodeRefusal.TREE: "NodeAffinity",
    NodeRefusal.PORT: "NodePorts",
    NodeRefusal.RESOURCES: "NodeResourcesFit",
    NodeRefusal.VOLUME_RESTRICTION: "VolumeRestrictions",
    NodeRefusal.VOLUME_LIMIT: "NodeVolumeLimits",
    NodeRefusal.VOLUME_BINDING: "VolumeBinding",
    NodeRefusal.VOLUME_ZONE: "VolumeZone",
    NodeRefusal.SPREAD: "PodTopologySpread",
    NodeRefusal.AFFINITY: "InterPodAffinity",
    NodeRefusal.ANTI_AFFINITY: "InterPodAffinity",
    NodeRefusal.OTHERS_ANTI_AFFINITY: "InterPodAffinity",
}
"""The plugin of kube-scheduler that refuses a node for the same reason, in its order."""


def node_refusal(constraints: NodeConstraints, node: Node) -> NodeRefusal | None:
    """Why the pod may not run on this node; None if it may."""
    if node.deleted:
        return NodeRefusal.DELETED
    names = required_names(constraints)
    if names is not None and node.name not in names:
        return NodeRefusal.SELECTOR
    if not in_reach(constraints, node):
        return NodeRefusal.TREE
    refusal, _ = taint_refusal(node.taints, constraints.tolerations)
    if refusal is not None:
        return refusal
    return None if selected(constraints, node) else NodeRefusal.SELECTOR


def in_reach(constraints: NodeConstraints, node: Node) -> bool:
    """Do the trees of quotas leave this node to the pod?

    A pod that names its nodes, as those of DaemonSets do, is not kept off the nodes of trees.
    """
    if not (constraints.within or constraints.beyond):
        return True
    labels = dict(node.labels)
    if constraints.within and not any(selects(each, labels) for each in constraints.within):
        return False
    return required_names(constraints) is not None or not any(
        selects(each, labels) for each in constraints.beyond
    )


def selected(constraints: NodeConstraints, node: Node) -> bool:
    """Do the pod's node selector and required affinity admit this node?"""
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in constraints.selector):
        return False
    return constraints.required is None or any(
        _matches(term, node.name, labels) for term in constraints.required
    )


def required_names(constraints: NodeConstraints) -> frozenset[str] | None:
    """The only nodes that a required affinity admits, if each of its terms names some.

    kube-scheduler looks at no others: these are refused by their name, whatever else they have.
    """
    if not constraints.required:
        return None
    found: frozenset[str] = frozenset()
    for term in constraints.required:
        listed = [
            frozenset(each.values)
            for each in term.fields
            if each.key == "metadata.name" and each.operator == "In"
        ]
        if not listed:
            return None
        found |= frozenset.intersection(*listed)
    return found


def preference(constraints: NodeConstraints, node: Node) -> int:
    """The sum of the weights of the preferred terms that this node matches."""
    labels = dict(node.labels)
    return sum(
        weight for weight, term in constraints.preferred if _matches(term, node.name, labels)
    )


def taint_refusal(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]
) -> tuple[NodeRefusal | None, int]:
    """Which taint keeps the pod off, and how many PreferNoSchedule taints does it not tolerate?"""
    if not taints:
        return None, 0
    tolerated = _Tolerations(tolerations)
    left = [taint for taint in taints if not tolerated.cover(taint)]
    hard = [taint for taint in left if taint.effect != "PreferNoSchedule"]
    if not hard:
        return None, len(left)
    cordoned = any(taint.key == UNSCHEDULABLE_TAINT and taint.implied for taint in hard)
    return NodeRefusal.UNSCHEDULABLE if cordoned else NodeRefusal.TAINT, len(left) - len(hard)


def _matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(requirement_matches(each, labels) for each in term.labels) and all(
        requirement_matches(each, {"metadata.name": name}) for each in term.fields
    )


class _Tolerations:
    """Tolerations, by what they tolerate: a pod may have thousands of them."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self._exists = {
            (each.key, each.effect) for each in tolerations if each.operator == "Exists"
        }
        self._equal = {
            (each.key, each.value, each.effect) for each in tolerations if each.operator == "Equal"
        }

    def cover(self, taint: Taint) -> bool:
        """Does one of them tolerate the taint? Without an effect it tolerates all effects."""
        return any(
            ("", effect) in self._exists
            or (taint.key, effect) in self._exists
            or (taint.key, taint.value, effect) in self._equal
            for effect in ("", taint.effect)
        )
