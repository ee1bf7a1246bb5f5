"""Why nodes are refused, in words: what `3 nodes ...` goes on with in a refusal's message."""

from collections.abc import Iterable

from aliquot.engine.model.pod_rules import PodRules
from aliquot.engine.placement.constraints import NodeRefusal

_WORDS = {
    NodeRefusal.SELECTOR: "not matched by its node selector or affinity",
    NodeRefusal.TREE: "outside its quota's tree",
    NodeRefusal.TAINT: "with a taint it does not tolerate",
    NodeRefusal.UNSCHEDULABLE: "that take no new pods (cordoned)",
    NodeRefusal.DELETED: "being deleted",
    NodeRefusal.VOLUME_RESTRICTION: "where another pod uses its volume",
    NodeRefusal.VOLUME_LIMIT: "that take no more volumes of its driver",
    NodeRefusal.VOLUME_BINDING: "without a volume for it",
    NodeRefusal.VOLUME_ZONE: "in another zone than its volume",
    NodeRefusal.OTHERS_ANTI_AFFINITY: "near pods whose anti-affinity is against it",
}


def refusal_words(code: NodeRefusal, rules: PodRules) -> str:
    """Why nodes refuse a pod with these rules."""
    match code:
        case NodeRefusal.PORT:
            ports = dict.fromkeys(str(each.port) for each in rules.ports)
            return f"with host port {' or '.join(ports)} taken"
        case NodeRefusal.SPREAD:
            keys = _keys(each.topology_key for each in rules.spread if each.required)
            return f"where its topology spread over {keys} would be too uneven"
        case NodeRefusal.AFFINITY:
            keys = _keys(term.topology_key for term in rules.affinity)
            return f"not near the pods of its pod affinity (by {keys})"
        case NodeRefusal.ANTI_AFFINITY:
            keys = _keys(term.topology_key for term in rules.anti_affinity)
            return f"near pods of its pod anti-affinity (by {keys})"
    return _WORDS[code]


def _keys(keys: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(keys))
