"""How near to each other the pods of a gang run, by the objects of now.

A PodGroup says so, by `networkTopology` or an annotation; else the pods of the gang, by theirs.
Pods in no gang that one owner controls ask for each other: to the engine they are a gang of which
each pod may start by itself. Nodes have the domains of HyperNodes as labels.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from aliquot.dialects import topology
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.topology import Nearness, Tiers
from aliquot.dialects.volcano import gangs, hyper_nodes
from aliquot.dialects.volcano.hyper_nodes import HyperNodes
from aliquot.engine import Event, Gang, GangGone, GangSet, Node, Topology
from aliquot.mirror.pod_record import PodRecord

Labels = tuple[tuple[str, str], ...]


class TopologyDemands:
    """Which gangs ask to be near, and of which nodes the domains are known."""

    def __init__(self, levels: tuple[str, ...], send: Callable[[Event], None]) -> None:
        """`levels` are labels of nodes, from narrow to wide."""
        self._levels = levels
        self._send = send
        self._hyper_nodes = HyperNodes()
        self._located: dict[str, Labels] = {}
        """The domains of each node, as they were last sent."""
        self._by_pod: dict[str, tuple[str, Nearness]] = {}
        """What pods ask for, and in which gang, by uid."""
        self._of_gang: dict[str, dict[str, Nearness]] = {}
        """The same by gang, the pod that came first at the beginning."""
        self.made: dict[str, Gang] = {}
        """The gangs of pods that are in none, by name, as they were last sent."""

    def refresh(self, kinds: Collection[str], objects: Iterable[Manifest]) -> list[Key]:
        """Follow the HyperNodes, if one has changed; the nodes that are in other domains now."""
        if hyper_nodes.KIND not in kinds:
            return []
        objects = list(objects)
        self._hyper_nodes = HyperNodes(objects)
        return [
            each.key
            for each in objects
            if each.kind == "Node" and self._domains_of(each) != self._located.get(each.name, ())
        ]

    def _domains_of(self, manifest: Manifest) -> Labels:
        labels = text_map(manifest.metadata.labels, manifest, "metadata.labels")
        return self._hyper_nodes.labels(manifest.name, labels)

    def located(self, node: Node) -> Node:
        """A node with its domains as labels."""
        if not self._hyper_nodes:
            self._located.pop(node.name, None)
            return node
        found = self._hyper_nodes.labels(node.name, dict(node.labels))
        self._located[node.name] = found
        return replace(node, labels=(*node.labels, *found)) if found else node

    @property
    def _tiers(self) -> Tiers:
        """The tiers of HyperNodes; without these, the levels, of which the narrowest is tier 1."""
        if self._hyper_nodes or not self._levels:
            return self._hyper_nodes.tiers
        return Tiers(tuple(enumerate(self._levels, 1)))

    def of_group(self, manifest: Manifest) -> Topology | None:
        """What a PodGroup asks for, or else its pods."""
        written = gangs.spec(manifest).network_topology
        if written is not None:
            return topology.of_tiers(written, self._tiers)
        asked = topology.nearness(manifest.metadata.annotations)
        if asked is None:
            asked = next(iter(self._of_gang.get(gangs.gang_name(manifest), {}).values()), None)
        return None if asked is None else topology.of_labels(asked, self._levels)

    def note(self, record: PodRecord) -> str | None:
        """Note what a pod asks for; returns its PodGroup's gang, if it asks for it anew."""
        uid, asked = record.pod.uid, record.nearness if record.alive else None
        if asked is None and uid not in self._by_pod:
            return None
        name = gang_of(record)
        new = None if asked is None or name is None else (name, asked)
        if self._by_pod.get(uid) == new:
            return None
        self.forget(uid)
        if new is None:
            return None
        self._by_pod[uid] = new
        self._of_gang.setdefault(new[0], {})[uid] = new[1]
        if record.group_ref.gang is not None:
            return new[0]
        self._make(new[0], record)
        return None

    def _make(self, name: str, record: PodRecord) -> None:
        """Send the gang of pods that are in none, unless it is there."""
        asked = next(iter(self._of_gang[name].values()))
        gang = Gang(
            name,
            created=record.pod.created if name not in self.made else self.made[name].created,
            topology=topology.of_labels(asked, self._levels),
        )
        if self.made.get(name) != gang:
            self.made[name] = gang
            self._send(GangSet(gang))

    def forget(self, uid: str) -> None:
        """A pod is gone: forget what it asked for, and the gang that was made for it alone."""
        found = self._by_pod.pop(uid, None)
        if found is None:
            return
        name, _ = found
        del self._of_gang[name][uid]
        if not self._of_gang[name]:
            del self._of_gang[name]
            if self.made.pop(name, None) is not None:
                self._send(GangGone(name))

    def gang_made_for(self, record: PodRecord) -> str | None:
        """The gang that was made for a pod that is in none, if there is one."""
        if record.nearness is None or record.group_ref.gang is not None:
            return None
        name = gang_of(record)
        return name if name in self.made else None


def gang_of(record: PodRecord) -> str | None:
    """The gang of a pod that asks to be near others: its PodGroup's, or that of its owner."""
    if record.group_ref.gang is not None:
        return f"{record.pod.namespace}/{record.group_ref.gang}"
    if record.owner is None:
        return None
    kind, namespace, name = record.owner
    return f"{namespace}/{kind}/{name}"
