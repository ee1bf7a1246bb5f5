"""Nodes as the engine's: allocatable resources, labels, taints and the class of their GPUs."""

from functools import lru_cache

from aliquot.dialects.core import amounts
from aliquot.dialects.core.gpu_models import is_model
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Condition, NodeSpec, NodeStatus, NodeWire
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import GPU_MEMORY, Effect, Node, Taint, quantity

HOSTNAME = "kubernetes.io/hostname"
_MOST_IMAGES = 65_536
"""Images that nodes share: far more than clusters have at a time."""
_NOT_READY = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_EFFECTS: dict[str, Effect] = {
    "NoSchedule": "NoSchedule",
    "PreferNoSchedule": "PreferNoSchedule",
    "NoExecute": "NoExecute",
}


def node(manifest: Manifest, cards: Cards, live: bool = False) -> Node:
    """A node as the engine's. A node that does not state `pods` takes any number of them.

    Its GPU memory, and its cards by model, are computed from its cards and slices; a value in its
    status is ignored. `live`:
    timestamps of the cluster are on the engine's clock, and a kubelet has labelled it; else the
    engine notes itself since when a node is not ready, and its hostname is its name.
    """
    read = manifest.content
    assert isinstance(read, NodeWire)
    status = read.status or NodeStatus()
    field = "status.allocatable" if status.allocatable is not None else "status.capacity"
    quantities = status.allocatable if status.allocatable is not None else status.capacity
    has = {"pods": quantity.LIMIT, **amounts.read(quantities, manifest, field)}
    has = {name: n for name, n in has.items() if name != GPU_MEMORY and not is_model(name)}
    written = text_map(manifest.metadata.labels, manifest, "metadata.labels")
    labels = dict(written) if live else {HOSTNAME: manifest.name, **written}
    models = cards.models.of_node(has, labels)
    has.update(cards.of_node(has, labels))
    unready = _unready(read)
    return Node(
        name=manifest.name,
        allocatable=tuple(sorted(has.items())),
        labels=tuple(sorted(labels.items())),
        taints=_taints(read, manifest),
        node_class=cards.node_class(labels),
        ready=is_ready(manifest),
        not_ready_since=_since(unready, manifest) if live and unready else None,
        deleted=manifest.metadata.deletion_timestamp is not None,
        models=models,
    )


def images(manifest: Manifest) -> tuple[tuple[str, int], ...]:
    """The names of a node's images, each with its size, in order of the names.

    Of a name that stands there twice, the first counts.
    """
    read = manifest.content
    assert isinstance(read, NodeWire)
    reported = (read.status.images if read.status is not None else None) or ()
    found: dict[str, tuple[str, int]] = {}
    for each in reported:
        for pair in _sized(each.names or (), each.size_bytes or 0):
            found.setdefault(pair[0], pair)
    return tuple(sorted(found.values()))


@lru_cache(_MOST_IMAGES)
def _sized(names: tuple[str, ...], size: int) -> tuple[tuple[str, int], ...]:
    """The names of an image, each with its size; nodes with the image share these."""
    return tuple((name, size) for name in names)


def is_ready(manifest: Manifest) -> bool:
    """Does a kubelet look after the pods of this node? One without conditions is ready."""
    read = manifest.content
    assert isinstance(read, NodeWire)
    taints = (read.spec or NodeSpec()).taints or []
    return _unready(read) is None and all(each.key not in _NOT_READY for each in taints)


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
        taints.append(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule", implied=True))
    if _unready(read) is not None:
        taints.append(Taint("node.kubernetes.io/not-ready", "", "NoSchedule", implied=True))
    return tuple(taints)


def _unready(read: NodeWire) -> Condition | None:
    """Its Ready condition, where that is not True."""
    conditions = (read.status.conditions if read.status is not None else None) or ()
    return next((c for c in conditions if c.type == "Ready" and c.status != "True"), None)


def _since(unready: Condition, manifest: Manifest) -> int | None:
    field = "status.conditions[Ready].lastTransitionTime"
    return timestamp(unready.last_transition_time, manifest.place, field)
