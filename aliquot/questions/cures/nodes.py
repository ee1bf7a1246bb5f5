"""What of nodes could be changed so that a pod starts: a taint removed, a node like another added.

A node to copy is one that would hold the pod if it were empty, the smallest first: what is added
must be paid for.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from aliquot.dialects.core.manifest import Manifest
from aliquot.engine import Explanation, quantity
from aliquot.json import Body, fresh
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions.cures.changes import add, patch
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.moment import Moment

HOSTNAME = "kubernetes.io/hostname"
_MOST_OPENED = 2
"""Nodes whose taints are proposed to go, first by name: one will do."""
_MOST_COPIED = 3
"""Sizes of nodes that are proposed as a model."""
_MOST_ADDED = 16
"""Nodes that are proposed at once: more are a plan of their own."""
_BY_PODS = {
    *("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread"),
    *("NodeVolumeLimits", "VolumeRestrictions"),
}
"""The plugins that refuse a node for what runs on it: one like it, but empty, may do."""
_CORDON = "node.kubernetes.io/unschedulable"


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """Changes of nodes that might let the pod start."""
    record = moment.pod(path)
    assert record is not None
    refused = {gate.gate for gate in explanation.gates if not gate.passes}
    if refused.isdisjoint({"Nodes", "Runtime", "Deserved", "Borrowing"}):
        return
    by_node = moment.engine.node_refusals(record.pod.uid)
    if "Nodes" in refused:
        yield from _open(moment, moment.engine.roomy_nodes(record.pod.uid), by_node)
    yield from _copies(moment, by_node, _asked(moment, record, explanation))


def _open(moment: Moment, roomy: set[str], by_node: dict[str, str]) -> Iterator[Proposal]:
    """Nodes with room that a taint or a cordon closes."""
    objects = moment.simulation.world.mirror.store.objects
    closed = [
        n for n in sorted(roomy) if by_node.get(n) in ("TaintToleration", "NodeUnschedulable")
    ]
    for name in closed[:_MOST_OPENED]:
        node = objects.get(("Node", "", name))
        if node is None:
            continue
        spec = node.body.get("spec") or {}
        body: Body = {}
        words = f"uncordon node {name}"
        if spec.get("unschedulable"):
            body["unschedulable"] = None
        taints = spec.get("taints") or []
        if taints:
            kept = [each for each in taints if each.get("effect") == "PreferNoSchedule"]
            gone = [each.get("key", "") for each in taints if each not in kept]
            body["taints"] = kept or None
            if any(key != _CORDON for key in gone):
                words = f"remove taint {', '.join(gone)} of node {name}"
        if body:
            yield Proposal(words, (patch(node.key, {"spec": body}),))


def _asked(moment: Moment, record: PodRecord, explanation: Explanation) -> dict[str, int]:
    """What the pods that start together, and those before them, ask for of nodes."""
    records, asked = moment.simulation.world.mirror.records, Counter(explanation.place.asks)
    for uid in explanation.pods:
        found = records.get(uid)
        asked.update(dict((found or record).pod.shape.requests))
    return asked


def _copies(moment: Moment, by_node: dict[str, str], asked: dict[str, int]) -> Iterator[Proposal]:
    """A node like one that the pod's own words allow, whatever runs there; or as many as it takes.

    One is enough for the pod itself; those before it would be there first.
    """
    objects = moment.simulation.world.mirror.store.objects
    seen: dict[tuple[tuple[str, str], ...], Manifest] = {}
    for (kind, _, name), node in objects.items():
        if kind == "Node" and by_node.get(name, "NodeResourcesFit") in _BY_PODS:
            has = (node.body.get("status") or {}).get("allocatable") or {}
            shape = tuple(sorted((key, str(value)) for key, value in has.items()))
            seen.setdefault(shape, node)
    ranked = sorted(seen.values(), key=lambda node: (_size(node), node.name))
    for node in ranked[:_MOST_COPIED]:
        has = (node.body.get("status") or {}).get("allocatable") or {}
        shares = (
            -(-amount // there)
            for name, amount in asked.items()
            if (there := quantity.amount(name, str(has.get(name, "0")))) > 0
        )
        for number in dict.fromkeys((1, min(max(shares, default=1), _MOST_ADDED))):
            words = "a node" if number == 1 else f"{number} nodes"
            yield Proposal(f"add {words} like {node.name}", (add(_several(objects, node, number)),))


def _several(objects: Any, node: Manifest, number: int) -> list[Body]:
    """So many nodes like this one."""
    names: list[str] = []
    for _ in range(number):
        names.append(free_name(objects, node.name, frozenset(names)))
    return [like(node, name) for name in names]


def _size(node: Manifest) -> tuple[int, ...]:
    has = (node.body.get("status") or {}).get("allocatable") or {}
    scarce = sorted(name for name in has if "/" in name)
    order = (*scarce, "cpu", "memory")
    return tuple(quantity.amount(name, str(has.get(name, "0"))) for name in order)


def free_name(objects: Any, name: str, taken: frozenset[str] = frozenset()) -> str:
    """The first name like this one that no node has."""
    number = 2
    while ("Node", "", f"{name}-{number}") in objects or f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def like(node: Manifest, name: str) -> Body:
    """A new node like another: what it has, its labels and taints; ready, and not cordoned."""
    metadata = node.body.get("metadata") or {}
    made: Body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    for field in ("labels", "annotations"):
        if metadata.get(field):
            made["metadata"][field] = fresh(metadata[field])
    if HOSTNAME in made["metadata"].get("labels", {}):
        made["metadata"]["labels"][HOSTNAME] = name
    taints = [t for t in (node.body.get("spec") or {}).get("taints") or [] if not _passes(t)]
    if taints:
        made["spec"] = {"taints": fresh(taints)}
    status = node.body.get("status") or {}
    made["status"] = {k: fresh(status[k]) for k in ("capacity", "allocatable") if k in status}
    return made


def _passes(taint: Body) -> bool:
    """Is it a taint of a node's state, which a new node does not have?"""
    return str(taint.get("key", "")).startswith("node.kubernetes.io/")
