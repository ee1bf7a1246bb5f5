"""Node constraints: may a pod run on a node at all, whatever it requests?

Node selectors, node affinity, taints and tolerations, with the meaning Kubernetes gives them. Pure
functions of one pod and one node; `preferences` keeps their results.
"""

from collections.abc import Mapping
from enum import IntEnum

from aliquot.engine.model.node import Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.selector import Term, requirement_matches


class NodeRefusal(IntEnum):
    """Why a pod may not run on a node; negative, so that it can be stored in a column of scores."""

    GONE = -1
    SELECTOR = -2
    TAINT = -3
    DELETED = -4


def node_refusal(constraints: NodeConstraints, node: Node) -> NodeRefusal | None:
    """Why the pod may not run on this node; None if it may."""
    if node.deleted:
        return NodeRefusal.DELETED
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in constraints.selector):
        return NodeRefusal.SELECTOR
    if constraints.required is not None and not any(
        _matches(term, node.name, labels) for term in constraints.required
    ):
        return NodeRefusal.SELECTOR
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not _tolerated(taint, constraints.tolerations):
            return NodeRefusal.TAINT
    return None


def preference(constraints: NodeConstraints, node: Node) -> int:
    """The sum of the weights of the preferred terms that this node matches."""
    labels = dict(node.labels)
    return sum(
        weight for weight, term in constraints.preferred if _matches(term, node.name, labels)
    )


def soft_taints(constraints: NodeConstraints, node: Node) -> int:
    """How many PreferNoSchedule taints of the node the pod does not tolerate."""
    return sum(
        taint.effect == "PreferNoSchedule" and not _tolerated(taint, constraints.tolerations)
        for taint in node.taints
    )


def _matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(requirement_matches(each, labels) for each in term.labels) and all(
        requirement_matches(each, {"metadata.name": name}) for each in term.fields
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
