"""Where volumes can be used, over the nodes: by their affinity, by their zone, by their driver.

A volume that is written for a plugin of Kubernetes' own has another affinity on the nodes on which
a CSI driver has replaced that plugin.
"""

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.model.selector import Requirement, Term
from aliquot.engine.model.volumes import PersistentVolume, StorageCapacity, VolumeAffinity
from aliquot.engine.placement.node_labels import Mask
from aliquot.engine.placement.node_masks import NodeMasks

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_GENERAL = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
}
"""The labels of today in place of those of old volumes and nodes."""
_TOPOLOGY = (_ZONE, _REGION, *_GENERAL)


class VolumeNodes:
    """Masks over the nodes, for volumes."""

    def __init__(self, nodes: Nodes, book: Volumes) -> None:
        self._nodes = nodes
        self._book = book
        self._masks = NodeMasks(nodes)
        self._migrated: dict[str, Mask] = {}
        self._at: tuple[int, int] = (-1, -1)
        self.version = 0
        """Grows whenever a mask may differ."""

    @property
    def count(self) -> int:
        """How many slots the nodes have."""
        return self._masks.count

    def refresh(self) -> None:
        """Follow the nodes and their drivers."""
        self._masks.refresh()
        moment = self._masks.version, self._book.migrations
        if moment != self._at:
            self._at = moment
            self._migrated.clear()
            self.version += 1

    def every(self) -> Mask:
        """All nodes."""
        return self._masks.every()

    def none(self) -> Mask:
        """No node."""
        return self._masks.none()

    def only(self, node: str) -> Mask:
        """One node alone, if it exists."""
        found = self._masks.none()
        if node in self._nodes.known:
            found[self._nodes.slots[node]] = True
        return found

    def of(self, affinity: VolumeAffinity) -> Mask:
        """The nodes on which a volume of this affinity can be used."""
        plain = self._of_terms(affinity.required)
        if affinity.migrated == affinity.required or not affinity.plugin:
            return plain
        migrated = self.migrated_from(affinity.plugin)
        found: Mask = (migrated & self._of_terms(affinity.migrated)) | (plain & ~migrated)
        return found

    def _of_terms(self, terms: tuple[Term, ...] | None) -> Mask:
        return self._masks.every() if terms is None else self._masks.matching_any(terms)

    def migrated_from(self, plugin: str) -> Mask:
        """The nodes on which a CSI driver has replaced this plugin."""
        found = self._migrated.get(plugin)
        if found is None:
            found = self._migrated[plugin] = self._masks.none()
            for name, drivers in self._book.drivers.items():
                if plugin in drivers.migrated and name in self._nodes.known:
                    found[self._nodes.slots[name]] = True
        return found

    def in_zone_of(self, volume: PersistentVolume) -> Mask:
        """The nodes in the zones and regions of a volume, and those without any such label."""
        found, labelled = self._masks.every(), self._masks.none()
        for key in _TOPOLOGY:
            labelled |= self._masks.meeting(Requirement(key, "Exists"))
        for key, values in volume.zones:
            here = self._masks.meeting(Requirement(key, "In", values))
            general = _GENERAL.get(key)
            if general is not None:
                absent = self._masks.meeting(Requirement(key, "DoesNotExist"))
                here = here | (absent & self._masks.meeting(Requirement(general, "In", values)))
            found &= here
        return found | ~labelled

    def provisioning(self, topologies: tuple[Term, ...]) -> Mask:
        """The nodes for which a class with these topologies provisions volumes."""
        return self._masks.matching_any(topologies) if topologies else self._masks.every()

    def reached_by(self, capacity: StorageCapacity) -> Mask:
        """The nodes from which this storage can be used."""
        if capacity.nodes is None:
            return self._masks.none()
        found = self._masks.every()
        for requirement in capacity.nodes:
            found &= self._masks.meeting(requirement)
        return found
