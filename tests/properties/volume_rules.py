"""The rules about volumes, written plainly: one pod, one node, no columns.

An oracle for `placement.volumes`, which shares no code with it beyond the meaning of a requirement.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot.engine import (
    Node,
    NodeDrivers,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    Term,
    VolumeBinding,
    VolumeClaim,
    VolumeUse,
    requirement_matches,
)

RESTRICTION, LIMIT, BINDING, ZONE = -6, -7, -8, -9
Uses = tuple[VolumeUse, ...]


@dataclass
class Storage:
    """What exists, and the pods on nodes: what each mounts, where, and what was chosen for it."""

    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, VolumeClaim] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    drivers: dict[str, NodeDrivers] = field(default_factory=dict)
    capacities: list[StorageCapacity] = field(default_factory=list)
    tracking: set[str] = field(default_factory=set)
    pods: list[tuple[Uses, str, tuple[VolumeBinding, ...]]] = field(default_factory=list)

    def refused(self, uses: Uses, node: Node) -> int:
        """The first rule that refuses the node, 0 if none does."""
        if self._in_use(uses, node):
            return RESTRICTION
        if self._full(uses, node):
            return LIMIT
        if self.chosen(uses, node) is None:
            return BINDING
        named = tuple(use for use in uses if not use.owners)  # ephemeral ones have no zone
        return 0 if all(self._in_zone(volume, node) for volume in self._bound(named)) else ZONE

    def is_blocked(self, uses: Uses) -> bool:
        """Can the pod start nowhere, for what is wrong with its claims?"""
        return any(use.claim and self._is_wrong(use) for use in uses)

    def _is_wrong(self, use: VolumeUse) -> bool:
        claim = self.claims.get(use.claim)
        if claim is None or claim.lost or claim.deleted:
            return True
        if use.owners and claim.owner not in use.owners:
            return True
        if claim.volume:
            return not claim.bound or claim.volume not in self.volumes
        of_class = self.classes.get(claim.storage_class)
        return of_class is None or not of_class.waits

    def _in_use(self, uses: Uses, node: Node) -> bool:
        for use in uses:
            claim = self.claims.get(use.claim)
            for other_uses, where, _ in self.pods:
                for other in other_uses:
                    if claim is not None and claim.one_pod and other.claim == use.claim:
                        return True
                    if where == node.name and use.disk and other.disk:
                        same = set(use.disk.names) & set(other.disk.names)
                        if same and not (use.disk.read_only and other.disk.read_only):
                            return True
        return False

    def _full(self, uses: Uses, node: Node) -> bool:
        here = {h for other, where, _ in self.pods if where == node.name for h in self._csi(other)}
        new = set(self._csi(uses)) - here
        for driver, most in self.drivers.get(node.name, NodeDrivers(node.name)).limits:
            more = sum(each[0] == driver for each in new)
            if more and more + sum(each[0] == driver for each in here) > most:
                return True
        return False

    def _csi(self, uses: Uses) -> Iterator[tuple[str, str]]:
        for use in uses:
            claim = self.claims.get(use.claim)
            if claim is None:
                if use.csi is not None:
                    yield use.csi.driver, use.csi.handle
            elif claim.volume in self.volumes:
                csi = self.volumes[claim.volume].csi
                if csi is not None:
                    yield csi.driver, csi.handle
            elif (of_class := self.classes.get(claim.storage_class)) and of_class.csi:
                yield of_class.csi.driver, claim.path

    def _bound(self, uses: Uses) -> list[PersistentVolume]:
        claims = [self.claims[use.claim] for use in uses if use.claim in self.claims]
        return [self.volumes[each.volume] for each in claims if each.volume in self.volumes]

    def _in_zone(self, volume: PersistentVolume, node: Node) -> bool:
        labels = dict(node.labels)
        if not any("zone" in key or "region" in key for key in labels):
            return True
        return all(labels.get(key) in values for key, values in volume.zones)

    def chosen(self, uses: Uses, node: Node) -> dict[str, str | None] | None:
        """What each unbound claim gets on the node; None if that is not possible."""
        if not all(self._reaches(each, node) for each in self._bound(uses)):
            return None
        claims = [self.claims[use.claim] for use in uses if use.claim in self.claims]
        waiting = [each for each in claims if each.volume not in self.volumes]
        found: dict[str, str | None] = {}
        for claim in sorted(waiting, key=lambda each: each.size):
            near = self._provisioned_near(claim)
            if near is not None:
                if near != node.name or not self._provisions(claim, node):
                    return None
                found.setdefault(claim.path, None)
                continue
            name = self._smallest(claim, node, set(found.values()))
            if name is None and not self._provisions(claim, node):
                return None
            found.setdefault(claim.path, name)
        return found

    def _provisioned_near(self, claim: VolumeClaim) -> str | None:
        if claim.selected_node is not None:
            return claim.selected_node
        for _, where, bindings in self.pods:
            if VolumeBinding(claim.path) in bindings:
                return where
        return None

    def _smallest(self, claim: VolumeClaim, node: Node, taken: set[str | None]) -> str | None:
        ordered = sorted(self.volumes.values(), key=lambda each: each.name)
        usable = [each for each in ordered if self._suits(each, claim)]
        kept = [each for each in usable if self.kept_for(each) == claim.path]
        if kept:
            return kept[0].name if self._reaches(kept[0], node) else None
        free = [
            each
            for each in usable
            if self.kept_for(each) is None
            and each.available
            and each.name not in taken
            and set(claim.access_modes) <= set(each.access_modes)
            and all(requirement_matches(r, dict(each.labels)) for r in claim.selector)
            and self._reaches(each, node)
        ]
        return min(free, key=lambda each: (each.size, each.name)).name if free else None

    def _suits(self, volume: PersistentVolume, claim: VolumeClaim) -> bool:
        same = volume.storage_class == claim.storage_class and volume.mode == claim.mode
        return same and volume.size >= claim.size and not volume.deleted

    def kept_for(self, volume: PersistentVolume) -> str | None:
        """The claim that has the volume, by its own word or by a pod's booking."""
        if volume.claim:
            return volume.claim
        for _, _, bindings in self.pods:
            for each in bindings:
                claim = self.claims.get(each.claim)
                if each.volume == volume.name and (
                    claim is None or claim.volume in ("", volume.name)
                ):
                    return each.claim
        return None

    def _provisions(self, claim: VolumeClaim, node: Node) -> bool:
        of_class = self.classes[claim.storage_class]
        allowed = not of_class.topologies or any(_holds(t, node) for t in of_class.topologies)
        if not of_class.provisions or not allowed:
            return False
        if of_class.provisioner not in self.tracking or not claim.size:
            return True
        return any(
            each.storage_class == claim.storage_class
            and each.most >= claim.size
            and each.nodes is not None
            and all(requirement_matches(r, dict(node.labels)) for r in each.nodes)
            for each in self.capacities
        )

    def _reaches(self, volume: PersistentVolume, node: Node) -> bool:
        affinity = volume.affinity
        migrated = self.drivers.get(node.name, NodeDrivers(node.name)).migrated
        moved = affinity.plugin and affinity.plugin in migrated
        terms = affinity.migrated if moved else affinity.required
        return terms is None or any(_holds(term, node) for term in terms)


def _holds(term: Term, node: Node) -> bool:
    labels = dict(node.labels)
    return bool(term.labels) and all(requirement_matches(r, labels) for r in term.labels)
