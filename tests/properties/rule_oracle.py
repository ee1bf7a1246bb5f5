"""Rules about pods, written plainly: may a pod start on a node, beside the pods that run?

Node by node and pod by pod, as the documentation of Kubernetes has it; shares no code with the
engine but its values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from aliquot.engine import (
    AffinityTerm,
    HostPort,
    Node,
    NodeConstraints,
    Pod,
    PodSelector,
    SpreadConstraint,
    node_refusal,
)

Placed = Mapping[str, tuple[Pod, Node]]
"""By uid, the pods that run, and where."""


def may_start(pod: Pod, node: Node, nodes: Iterable[Node], placed: Placed) -> bool:
    """Do the rules of this pod, and those of others about it, let it start on this node?"""
    running = list(placed.values())
    return (
        all(not _clash(pod.rules.ports, other.rules.ports) for other, at in running if at == node)
        and all(_is_even(each, pod, node, list(nodes), running) for each in _required(pod))
        and _is_near_partners(pod, node, running)
        and not any(_repels(each, pod, other, node, at) for other, at in running for each in _anti)
    )


def _repels(terms_of: int, pod: Pod, other: Pod, node: Node, at: Node) -> bool:
    """Has the pod (0) or the other one (1) an anti-affinity against the other, in one domain?"""
    holder, met = ((pod, other), (other, pod))[terms_of]
    return any(
        matches(term.selector, met) and _together(term, node, at)
        for term in holder.rules.anti_affinity
    )


_anti = (0, 1)


def _together(term: AffinityTerm, node: Node, at: Node) -> bool:
    value = dict(node.labels).get(term.topology_key)
    return value is not None and dict(at.labels).get(term.topology_key) == value


def _is_near_partners(pod: Pod, node: Node, running: list[tuple[Pod, Node]]) -> bool:
    terms = pod.rules.affinity
    if any(term.topology_key not in dict(node.labels) for term in terms):
        return False
    partners = [at for other, at in running if all(matches(term.selector, other) for term in terms)]
    if all(any(_together(term, node, at) for at in partners) for term in terms):
        return True
    exist = any(term.topology_key in dict(at.labels) for at in partners for term in terms)
    return not exist and all(matches(term.selector, pod) for term in terms)


def _required(pod: Pod) -> list[SpreadConstraint]:
    return [each for each in pod.rules.spread if each.required]


def _is_even(
    constraint: SpreadConstraint,
    pod: Pod,
    node: Node,
    nodes: list[Node],
    running: list[tuple[Pod, Node]],
) -> bool:
    keys = [each.topology_key for each in _required(pod)]
    counting = [
        each
        for each in nodes
        if all(key in dict(each.labels) for key in keys) and _counts(constraint, pod, each)
    ]
    if constraint.topology_key not in dict(node.labels):
        return False
    by_domain = {dict(each.labels)[constraint.topology_key]: 0 for each in counting}
    for other, at in running:
        if at in counting and matches(constraint.selector, other) and not other.terminating:
            by_domain[dict(at.labels)[constraint.topology_key]] += 1
    enough = len(by_domain) >= constraint.min_domains
    least = min(by_domain.values(), default=0) if enough else 0
    here = by_domain.get(dict(node.labels)[constraint.topology_key], 0)
    return here + constraint.counts_itself - least <= constraint.max_skew


def _counts(constraint: SpreadConstraint, pod: Pod, node: Node) -> bool:
    """Does the constraint look at this node, by the pod's affinity to nodes and its taints?"""
    where = pod.shape.constraints
    affinity = NodeConstraints(selector=where.selector, required=where.required)
    tolerations = NodeConstraints(tolerations=where.tolerations)
    node = replace(node, deleted=False)
    return (
        not constraint.honors_affinity or node_refusal(affinity, replace(node, taints=())) is None
    ) and (not constraint.honors_taints or node_refusal(tolerations, node) is None)


def _clash(ports: tuple[HostPort, ...], others: tuple[HostPort, ...]) -> bool:
    return any(
        (one.port, one.protocol) == (other.port, other.protocol)
        and (one.ip == other.ip or "0.0.0.0" in (one.ip, other.ip))
        for one in ports
        for other in others
    )


def matches(selector: PodSelector, pod: Pod) -> bool:
    """Does a selector of these tests select a pod? Its requirements are all `In`."""
    everywhere = selector.namespace_selector == ()
    if not everywhere and pod.namespace not in selector.namespaces:
        return False
    labels = dict(pod.labels)
    return selector.labels is not None and all(
        labels.get(each.key) in each.values for each in selector.labels
    )
