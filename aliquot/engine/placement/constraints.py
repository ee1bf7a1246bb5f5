"""May this pod run on this node at all, leaving aside how much it asks for?

Node selectors, node affinity, taints and tolerations, with the meaning Kubernetes gives them. Pure
functions over one node; `placement` keeps their answers.
"""

from collections.abc import Mapping
from enum import IntEnum

from aliquot.engine.model.node import Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.selector import Term, requirement_matches


class NodeRefusal(IntEnum):
    """Why a node is out of the question; negative, so that it can stand in a column of scores."""

    GONE = -1
    SELECTOR = -2
    TAINT = -3


def node_refusal(where: NodeConstraints, node: Node) -> NodeRefusal | None:
    """What keeps the pod off this node, if anything."""
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in where.selector):
        return NodeRefusal.SELECTOR
    if where.required is not None and not any(
        _matches(term, node.name, labels) for term in where.required
    ):
        return NodeRefusal.SELECTOR
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not _tolerated(taint, where.tolerations):
            return NodeRefusal.TAINT
    return None


def preference(where: NodeConstraints, node: Node) -> int:
    """The sum of the weights of the preferred terms that this node matches."""
    labels = dict(node.labels)
    return sum(weight for weight, term in where.preferred if _matches(term, node.name, labels))


def soft_taints(where: NodeConstraints, node: Node) -> int:
    """How many PreferNoSchedule taints of the node the pod does not tolerate."""
    return sum(
        taint.effect == "PreferNoSchedule" and not _tolerated(taint, where.tolerations)
        for taint in node.taints
    )


def _matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(requirement_matches(line, labels) for line in term.labels) and all(
        requirement_matches(line, {"metadata.name": name}) for line in term.fields
    )


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (
            (toleration.operator == "Exists" and toleration.key in ("", taint.key))
            or (
                toleration.operator == "Equal"
                and toleration.key == taint.key
                and toleration.value == taint.value
            )
        )
        for toleration in tolerations
    )
