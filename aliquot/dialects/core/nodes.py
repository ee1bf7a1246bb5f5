"""Nodes as the engine's: allocatable resources, labels, taints and the class of their GPUs."""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import NodeSpec, NodeStatus, NodeWire
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import GPU_MEMORY, Effect, Node, Taint, quantity

HOSTNAME = "kubernetes.io/hostname"
_NOT_READY = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_EFFECTS: dict[str, Effect] = {
    "NoSchedule": "NoSchedule",
    "PreferNoSchedule": "PreferNoSchedule",
    "NoExecute": "NoExecute",
}


def node(manifest: Manifest, cards: Cards) -> Node:
    """A node as the engine's. A node that does not state `pods` takes any number of them.

    Its GPU memory is computed from its cards and slices; a value in its status is ignored.
    """
    read = manifest.content
    assert isinstance(read, NodeWire)
    status = read.status or NodeStatus()
    field = "status.allocatable" if status.allocatable is not None else "status.capacity"
    quantities = status.allocatable if status.allocatable is not None else status.capacity
    has = {"pods": quantity.LIMIT, **amounts.read(quantities, manifest, field)}
    has.pop(GPU_MEMORY, None)
    written = text_map(manifest.metadata.labels, manifest, "metadata.labels")
    labels = {HOSTNAME: manifest.name, **written}
    has.update(cards.of_node(has, labels))
    return Node(
        name=manifest.name,
        allocatable=tuple(sorted(has.items())),
        labels=tuple(sorted(labels.items())),
        taints=_taints(read, manifest),
        node_class=cards.node_class(labels),
    )


def is_ready(manifest: Manifest) -> bool:
    """Does a kubelet look after the pods of this node? One without conditions is ready."""
    read = manifest.content
    assert isinstance(read, NodeWire)
    taints = (read.spec or NodeSpec()).taints or []
    return not (_reports_not_ready(read) or any(each.key in _NOT_READY for each in taints))


def _reports_not_ready(read: NodeWire) -> bool:
    conditions = read.status.conditions if read.status is not None else None
    return any(each.type == "Ready" and each.status != "True" for each in conditions or [])


def _taints(read: NodeWire, manifest: Manifest) -> tuple[Taint, ...]:
    """Its taints, and the taints for being cordoned (unschedulable) or not ready."""
    spec = read.spec or NodeSpec()
    taints = []
    for index, each in enumerate(spec.taints or []):
        effect = _EFFECTS.get(each.effect)
        if effect is None:
            field = f"spec.taints[{index}].effect"
            manifest.refuse(field, f"{each.effect!r} is none of {', '.join(_EFFECTS)}")
            continue
        taints.append(Taint(each.key, each.value or "", effect))
    if spec.unschedulable:
        taints.append(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    if _reports_not_ready(read):
        taints.append(Taint("node.kubernetes.io/not-ready", "", "NoSchedule"))
    return tuple(taints)
