"""The volumes: which exist, which are bound or reserved, and which pods use them where.

What exists comes by events. What is used and reserved follows the bookings of pods, as a tally of
the ledger: a pod that is held, assumed, bound or tried uses its volumes on its node, and what was
chosen for its unbound claims is kept for them. So no volume is promised twice, and what is taken
back is free again. A pod without volumes leaves no trace here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Booking
from aliquot.engine.model.volumes import (
    DRIVERS,
    CsiVolume,
    NodeDrivers,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageKey,
    StorageObject,
    VolumeAttachment,
    VolumeBinding,
    VolumeClaim,
    VolumeUse,
    claim_news,
    class_news,
    storage_key,
    volume_news,
)

_Counted = TypeVar("_Counted")
_Kept = TypeVar("_Kept")


class Volumes:
    """All volumes, claims and classes, and what pods use of them.

    What waits for volumes is named by *news* (`Freed.volumes`, `Watch.volumes`).
    """

    def __init__(self, changes: Changes) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[str, VolumeClaim] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, NodeDrivers] = {}
        """The CSI drivers of each node."""
        self.of_class: dict[str, dict[str, None]] = {}
        """The volumes of each class."""
        self.users: dict[str, Counter[str]] = {}
        """How many pods use each claim, by node."""
        self.disks: dict[str, dict[str, Counter[bool]]] = {}
        """How many pods mount each disk on each node to read it (True), or to write."""
        self.version = 0
        """Grows with every change that may open a node for a pod with volumes, or close one."""
        self.migrations = 0
        """Grows whenever a node may have migrated from other plugins."""
        self._objects: dict[StorageKey, StorageObject] = {}
        self._tracked: dict[str, None] = {}
        """The drivers that say where how much room is left."""
        self._capacities: dict[str, dict[str, StorageCapacity]] = {}
        self._attached: dict[str, dict[str, VolumeAttachment]] = {}
        """By node."""
        self._attached_volumes: dict[str, dict[str, str]] = {}
        """By volume, the node of each attachment."""
        self._with_claim: dict[str, dict[str, None]] = {}
        self._mounts: dict[str, Counter[VolumeUse]] = {}
        self._chosen: dict[str, Counter[tuple[str, str | None]]] = {}
        self._reserved: dict[str, Counter[str]] = {}
        self._note_mounts = changes.mounts.append
        self._note_volume = changes.volumes.append

    def get(self, key: StorageKey) -> StorageObject | None:
        """The object with this key."""
        return self._objects.get(key)

    def all(self) -> Iterator[StorageObject]:
        """All objects."""
        return iter(self._objects.values())

    def set(self, found: StorageObject) -> tuple[str, ...]:
        """An object exists with this content; returns what that is news of."""
        return self._replace(storage_key(found), found)

    def remove(self, key: StorageKey) -> tuple[str, ...]:
        """An object is gone; returns what that is news of."""
        return self._replace(key, None)

    def _replace(self, key: StorageKey, new: StorageObject | None) -> tuple[str, ...]:
        old = self._objects.pop(key, None)
        if old == new:
            if new is not None:
                self._objects[key] = new
            return ()
        self.version += 1
        news: dict[str, None] = {}
        if old is not None:
            self._leave(old)
            news.update(dict.fromkeys(self._news(old)))
        if new is not None:
            self._objects[key] = new
            self._enter(new)
            news.update(dict.fromkeys(self._news(new)))
        return tuple(news)

    def _enter(self, new: StorageObject) -> None:
        match new:
            case PersistentVolume():
                self.volumes[new.name] = new
                self.of_class.setdefault(new.storage_class, {})[new.name] = None
                if new.claim:
                    self._with_claim.setdefault(new.claim, {})[new.name] = None
            case VolumeClaim():
                self.claims[new.path] = new
            case StorageClass():
                self.classes[new.name] = new
            case NodeDrivers():
                self.drivers[new.node] = new
                self.migrations += bool(new.migrated)
            case StorageDriver(tracks_capacity=True):
                self._tracked[new.name] = None
            case StorageCapacity():
                self._capacities.setdefault(new.storage_class, {})[new.path] = new
            case VolumeAttachment():
                self._attached.setdefault(new.node, {})[new.name] = new
                self._attached_volumes.setdefault(new.volume, {})[new.name] = new.node
        self._mark(new)

    def _leave(self, old: StorageObject) -> None:
        match old:
            case PersistentVolume():
                del self.volumes[old.name]
                _drop(self.of_class, old.storage_class, old.name)
                if old.claim:
                    _drop(self._with_claim, old.claim, old.name)
            case VolumeClaim():
                del self.claims[old.path]
            case StorageClass():
                del self.classes[old.name]
            case NodeDrivers():
                del self.drivers[old.node]
                self.migrations += bool(old.migrated)
            case StorageDriver(tracks_capacity=True):
                del self._tracked[old.name]
            case StorageCapacity():
                _drop(self._capacities, old.storage_class, old.path)
            case VolumeAttachment():
                _drop(self._attached, old.node, old.name)
                _drop(self._attached_volumes, old.volume, old.name)
        self._mark(old)

    def _mark(self, changed: StorageObject) -> None:
        """Note on which nodes volumes may count otherwise now, and which volumes may be free."""
        nodes: tuple[str, ...] = ()
        match changed:
            case PersistentVolume(name=name):
                self._note_volume(name)
                attached = self._attached_volumes.get(name, {})
                nodes = (*self.users.get(changed.claim, ()), *attached.values())
            case VolumeClaim():
                for name in self._reserved_for(changed.path):
                    self._note_volume(name)
                nodes = tuple(self.users.get(changed.path, ()))
            case StorageClass():
                nodes = tuple(self._mounts)
            case NodeDrivers(node=node) | VolumeAttachment(node=node):
                nodes = (node,)
        for each in nodes:
            self._note_mounts(each)

    def _reserved_for(self, claim: str) -> list[str]:
        chosen = self._chosen.get(claim, ())
        return [volume for _, volume in chosen if volume is not None]

    def _news(self, changed: StorageObject) -> Iterator[str]:
        """Whom a change may help: what waiting pods watch."""
        match changed:
            case PersistentVolume():
                yield volume_news(changed.name)
                if changed.claim:
                    yield claim_news(changed.claim)
                if self.is_free(changed):
                    yield class_news(changed.storage_class)
            case VolumeClaim():
                yield claim_news(changed.path)
                yield from map(volume_news, self._reserved_for(changed.path))
            case StorageClass(name=name) | StorageCapacity(storage_class=name):
                yield class_news(name)
            case NodeDrivers() | VolumeAttachment():
                yield DRIVERS
            case StorageDriver():
                classes = self.classes.values()
                yield from (class_news(c.name) for c in classes if c.provisioner == changed.name)

    def widened(self, news: Iterable[str]) -> list[str]:
        """The same news; that a volume is free is also news of its class."""
        found = dict.fromkeys(news)
        for each in list(found):
            volume = self.volumes.get(each.removeprefix(volume_news("")))
            if volume is not None and self.is_free(volume):
                found[class_news(volume.storage_class)] = None
        return list(found)

    # What pods use.

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        uses, node = booking.rules.volumes, booking.node
        if not uses or node is None:
            return
        self.version += 1
        mounts = self._mounts.setdefault(node, Counter())
        for use in uses:
            _count(mounts, use, sign)
            if use.claim:
                users = self.users.setdefault(use.claim, Counter())
                _count(users, node, sign)
                if not users:
                    del self.users[use.claim]
            if use.disk is not None:
                for name in use.disk.names:
                    self._count_disk(name, node, use.disk.read_only, sign)
        if not mounts:
            del self._mounts[node]
        for binding in booking.volumes:
            self._reserve(binding, node, sign)
        self._note_mounts(node)

    def _count_disk(self, name: str, node: str, read_only: bool, sign: int) -> None:
        nodes = self.disks.setdefault(name, {})
        users = nodes.setdefault(node, Counter())
        _count(users, read_only, sign)
        if not users:
            del nodes[node]
        if not nodes:
            del self.disks[name]

    def _reserve(self, binding: VolumeBinding, node: str, sign: int) -> None:
        claim, volume = binding.claim, binding.volume
        chosen = self._chosen.setdefault(claim, Counter())
        _count(chosen, (node, volume), sign)
        if not chosen:
            del self._chosen[claim]
        if volume is not None:
            claims = self._reserved.setdefault(volume, Counter())
            _count(claims, claim, sign)
            if not claims:
                del self._reserved[volume]
            self._note_volume(volume)

    # What follows.

    def is_free(self, volume: PersistentVolume) -> bool:
        """May a claim that it does not name get this volume, as far as others are concerned?"""
        return (
            volume.available
            and not volume.deleted
            and not volume.claim
            and not self._is_reserved(volume.name)
        )

    def _is_reserved(self, volume: str) -> bool:
        """Is it kept for a claim that has no other volume by now?"""
        for claim in self._reserved.get(volume, ()):
            found = self.claims.get(claim)
            if found is None or found.volume in ("", volume):
                return True
        return False

    def is_provisioned(self, claim: VolumeClaim) -> str | None:
        """The node near which a volume is being provisioned, or is to be, for an unbound claim."""
        if claim.selected_node is not None:
            return claim.selected_node
        chosen = self._chosen.get(claim.path, ())
        return next((node for node, volume in chosen if volume is None), None)

    def own_volumes(self, claim: VolumeClaim) -> list[PersistentVolume]:
        """The volumes that are kept for an unbound claim: by their own word, or reserved for it."""
        named = dict(self._with_claim.get(claim.path, {}))
        named.update(dict.fromkeys(self._reserved_for(claim.path)))
        found = (self.volumes[name] for name in sorted(named) if name in self.volumes)
        return [each for each in found if _is_for(each, claim)]

    def tracks_capacity(self, provisioner: str) -> bool:
        """Does this driver say where how much room is left?"""
        return provisioner in self._tracked

    def capacities(self, storage_class: str) -> list[StorageCapacity]:
        """Where how large volumes of a class can be provisioned."""
        return list(self._capacities.get(storage_class, {}).values())

    def counted(self, node: str) -> dict[str, dict[str, None]]:
        """The handles of the volumes that pods mount on a node, by driver."""
        found: dict[str, dict[str, None]] = {}
        for use in self._mounts.get(node, ()):
            csi = self.csi_of(use)
            if csi is not None and self.counts_on(csi, node):
                found.setdefault(csi.driver, {})[csi.handle] = None
        return found

    def attached(self, node: str) -> dict[str, dict[str, None]]:
        """The handles of the volumes that are attached to a node, by driver."""
        found: dict[str, dict[str, None]] = {}
        for each in self._attached.get(node, {}).values():
            volume = self.volumes.get(each.volume)
            if volume is not None and volume.csi is not None and not volume.affinity.plugin:
                found.setdefault(each.driver, {})[volume.csi.handle] = None
        return found

    def counts_on(self, csi: CsiVolume, node: str) -> bool:
        """Does a volume count for its driver on this node?"""
        if not csi.plugin:
            return True
        return node in self.drivers and csi.plugin in self.drivers[node].migrated

    def csi_of(self, use: VolumeUse) -> CsiVolume | None:
        """How a volume of a pod counts: an unbound claim by its class, under its own path."""
        claim = self.claims.get(use.claim)
        if claim is None:
            return use.csi
        volume = self.volumes.get(claim.volume)
        if volume is not None:
            return volume.csi
        found = self.classes.get(claim.storage_class)
        if found is None or found.csi is None:
            return None
        return CsiVolume(found.csi.driver, claim.path, found.csi.plugin)

    def mounts(self, node: str) -> Counter[VolumeUse]:
        """How often each volume is mounted by the pods of a node."""
        return self._mounts.get(node, Counter())

    def figures(self) -> tuple[object, ...]:
        """What follows from the bookings, to be compared with a fold of them."""
        used = self.users, self.disks, self._mounts, self._chosen, self._reserved
        return tuple(dict(each) for each in used)


def _is_for(volume: PersistentVolume, claim: VolumeClaim) -> bool:
    """Is it this claim that the volume names, and not an earlier one of that name?"""
    if not volume.claim:
        return True
    same_uid = not (volume.claim_uid and claim.uid) or volume.claim_uid == claim.uid
    return volume.claim == claim.path and same_uid


def _count(counts: Counter[_Counted], each: _Counted, sign: int) -> None:
    counts[each] += sign
    if not counts[each]:
        del counts[each]


def _drop(index: dict[str, dict[str, _Kept]], key: str, name: str) -> None:
    del index[key][name]
    if not index[key]:
        del index[key]
