"""Volumes as a filter: on which nodes can a pod use its volumes, and which would it get there?

kube-scheduler's plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone, in that
order, as columns over the nodes. A claim that has a volume is bound to where that can be used. One
that waits for its first pod gets the smallest free volume that fits, or one that is provisioned;
which one is part of the pod's booking, so that no other pod is promised it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Booking, Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.model.pod_rules import PodRules
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.model.volume_fit import fits
from aliquot.engine.model.volumes import (
    DRIVERS,
    CsiVolume,
    PersistentVolume,
    VolumeBinding,
    VolumeClaim,
    VolumeUse,
    claim_news,
    class_news,
    volume_news,
)
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.node_labels import Mask
from aliquot.engine.placement.volumes.counts import VolumeCounts
from aliquot.engine.placement.volumes.nodes import VolumeNodes
from aliquot.engine.placement.volumes.pools import NO_VOLUME, VolumePools

_Column = NDArray[np.int64]


_RESTRICTION, _BINDING = NodeRefusal.VOLUME_RESTRICTION, NodeRefusal.VOLUME_BINDING
_ZONE = NodeRefusal.VOLUME_ZONE


class _Wrong(NamedTuple):
    """What is wrong with a claim, by which rule."""

    code: NodeRefusal
    reason: Reason
    message: str


class _Match:
    """What an unbound claim would get on each node: the place of a volume among `names`."""

    def __init__(self, claim: VolumeClaim, names: Sequence[str], places: _Column) -> None:
        self.claim = claim
        self.names = names
        self.places = places


class VolumeFilter:
    """Finds nodes for pods with volumes, and volumes for their claims."""

    def __init__(self, nodes: Nodes, book: Volumes, ledger: Ledger, changes: Changes) -> None:
        self._slots = nodes.slots
        self._book = book
        self._ledger = ledger
        self._nodes = VolumeNodes(nodes, book)
        self._counts = VolumeCounts(nodes, book, self._nodes)
        self._pools = VolumePools(book, self._nodes)
        self._mounts = changes.mounts.cursor()
        self._mounts_differ: dict[str, None] = {}
        """The nodes on which volumes are to be counted anew."""
        self._changed = changes.volumes.cursor()

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        self._book.post(booking, sign)

    @property
    def version(self) -> int:
        """Grows whenever a node may have become open for a pod with volumes, or closed."""
        return self._book.version

    def refresh(self) -> None:
        """Note what has changed in the books."""
        if self._changed:
            self._pools.note(dict.fromkeys(self._changed.read()))
        if self._mounts:
            self._mounts_differ.update(dict.fromkeys(self._mounts.read()))

    # Whatever the node.

    def blocking(self, rules: PodRules) -> Refusal | None:
        """Why a pod can start nowhere now, whatever the node: what is wrong with its claims."""
        found = self._first_wrong(rules)
        return found and Refusal(found.reason, found.message, watch=self.watches(rules))

    def blocking_code(self, rules: PodRules) -> NodeRefusal | None:
        """The rule by which every node is refused then, as kube-scheduler has it."""
        found = self._first_wrong(rules)
        return found and found.code

    def _first_wrong(self, rules: PodRules) -> "_Wrong | None":
        """What is wrong with the pod's claims: the first, in kube-scheduler's order of rules."""
        wrong = [each for use in rules.volumes if use.claim and (each := self._wrong_with(use))]
        return max(wrong, key=lambda each: each.code, default=None)

    def _wrong_with(self, use: VolumeUse) -> "_Wrong | None":
        """What is wrong with the claim of a pod."""
        claim, missing = self._book.claims.get(use.claim), Reason.VOLUME_MISSING
        if claim is None and use.owners:
            words = f"claim {use.claim} has yet to be made for its ephemeral volume"
            return _Wrong(_BINDING, Reason.WAITING_FOR_VOLUME, words)
        if claim is None:
            return _Wrong(_RESTRICTION, missing, f"there is no claim {use.claim}")
        if claim.lost:
            words = f"{claim.title} has lost its volume {claim.volume}"
            return _Wrong(_BINDING, missing, words)
        if claim.deleted:
            return _Wrong(_BINDING, missing, f"{claim.title} is being deleted")
        if use.owners and claim.owner not in use.owners:
            words = f"{claim.title} was not made for its ephemeral volume, but stands in its place"
            return _Wrong(_BINDING, missing, words)
        if not (claim.bound and claim.volume):
            return self._wrong_with_unbound(claim)
        if claim.volume in self._book.volumes:
            return None
        words = f"{claim.title} has the volume {claim.volume}, which does not exist"
        return _Wrong(_BINDING if use.owners else _ZONE, missing, words)

    def _wrong_with_unbound(self, claim: VolumeClaim) -> "_Wrong | None":
        reason, found = Reason.WAITING_FOR_VOLUME, self._book.classes.get(claim.storage_class)
        if claim.volume:
            words = f"{claim.title} is to be bound to the volume {claim.volume}, and is not yet"
        elif not claim.storage_class:
            words = f"{claim.title} has no volume yet, and no storage class"
        elif found is None:
            reason = Reason.VOLUME_MISSING
            words = f"{claim.title} asks for the storage class {claim.storage_class}"
            words += ", which does not exist"
        elif not found.waits:
            words = f"{claim.title} has no volume yet; its storage class {found.name} binds at once"
        else:
            return None
        return _Wrong(_BINDING, reason, words)

    def watches(self, rules: PodRules) -> tuple[Watch, ...]:
        """What must change before a pod that is refused for its volumes could start."""
        found: dict[str, None] = {}
        for use in rules.volumes:
            csi = self._book.csi_of(use)
            if csi is not None:
                found[DRIVERS] = None
            if not use.claim:
                continue
            found[claim_news(use.claim)] = None
            claim = self._book.claims.get(use.claim)
            if claim is not None and claim.volume:
                found[volume_news(claim.volume)] = None
            elif claim is not None and claim.storage_class:
                found[class_news(claim.storage_class)] = None
        return tuple(Watch(volumes=each) for each in found)

    # Node by node.

    def refuse(self, rules: PodRules, column: _Column) -> None:
        """Write into a column, where it is 0, which rule about volumes refuses the node."""
        blocked = self.blocking_code(rules)
        if blocked is not None:
            column[column == 0] = blocked
            return
        self._follow()
        for code, refused in self._refused(rules):
            np.putmask(column, refused[: len(column)] & (column == 0), code)

    def admits(self, rules: PodRules, node: str) -> bool:
        """Can a pod use its volumes on this node?"""
        if self.blocking_code(rules) is not None:
            return False
        self._follow()
        slot = self._slots[node]
        return not any(refused.item(slot) for _, refused in self._refused(rules))

    def _follow(self) -> None:
        self.refresh()
        self._nodes.refresh()
        names, self._mounts_differ = self._mounts_differ, {}
        self._counts.refresh(names)

    def _refused(self, rules: PodRules) -> Iterator[tuple[NodeRefusal, Mask]]:
        """The nodes that each rule refuses, in the order in which kube-scheduler asks them."""
        yield NodeRefusal.VOLUME_RESTRICTION, self._in_use(rules)
        csi = self._csi(rules)
        if csi:
            yield NodeRefusal.VOLUME_LIMIT, self._counts.full(csi, self._nodes.count)
        bound, unbound = self._claims(rules)
        if bound or unbound:
            yield NodeRefusal.VOLUME_BINDING, ~self._with_volumes(bound, unbound)
        zoned = [volume for volume in self._own_volumes(rules) if volume.zones]
        if zoned:
            refused = self._nodes.none()
            for volume in zoned:
                refused |= ~self._nodes.in_zone_of(volume)
            yield NodeRefusal.VOLUME_ZONE, refused

    def _in_use(self, rules: PodRules) -> Mask:
        """The nodes where a pod has a disk that cannot be shared; all, for a claim of one pod."""
        refused = self._nodes.none()
        for use in rules.volumes:
            claim = self._book.claims.get(use.claim)
            if claim is not None and claim.one_pod and use.claim in self._book.users:
                return self._nodes.every()
            if use.disk is not None:
                slots = [self._slots[node] for node in self._disk_nodes(use)]
                refused[slots] = True
        return refused

    def _disk_nodes(self, use: VolumeUse) -> Iterator[str]:
        """The nodes where a pod mounts the disk, unless both only read it."""
        assert use.disk is not None
        for name in use.disk.names:
            for node, users in self._book.disks.get(name, {}).items():
                if node in self._slots and (users[False] or not use.disk.read_only):
                    yield node

    def _claims(self, rules: PodRules) -> tuple[list[PersistentVolume], list[VolumeClaim]]:
        """The volumes that the pod's claims have, and its claims that have none."""
        bound, unbound = [], []
        for use in rules.volumes:
            claim = self._book.claims.get(use.claim)
            if claim is None:
                continue
            volume = self._book.volumes.get(claim.volume)
            if volume is not None:
                bound.append(volume)
            else:
                unbound.append(claim)
        return bound, unbound

    def _own_volumes(self, rules: PodRules) -> Iterator[PersistentVolume]:
        """The volumes of its claims, without those of ephemeral volumes, which have no zone."""
        for use in rules.volumes:
            claim = None if use.owners else self._book.claims.get(use.claim)
            volume = None if claim is None else self._book.volumes.get(claim.volume)
            if volume is not None:
                yield volume

    def _with_volumes(self, bound: list[PersistentVolume], unbound: list[VolumeClaim]) -> Mask:
        """The nodes where volumes can be used, and unbound claims could get some."""
        found = self._nodes.every()
        for volume in bound:
            found &= self._nodes.of(volume.affinity)
        for claim in unbound:
            node = self._book.is_provisioned(claim)
            if node is not None:
                found &= self._nodes.only(node) & self._provisioning(claim)
        for match in self._matches(unbound):
            unmatched = match.places == NO_VOLUME
            if unmatched.any():
                found &= ~unmatched | self._provisioning(match.claim)
        return found

    def _matches(self, unbound: list[VolumeClaim]) -> list[_Match]:
        """What each claim would get, the smallest first; but for those that are provisioned for."""
        open_claims = [each for each in unbound if self._book.is_provisioned(each) is None]
        found: list[_Match] = []
        for claim in sorted(open_claims, key=lambda each: each.size):
            found.append(self._own_match(claim) or self._free_match(claim, found))
        return found

    def _own_match(self, claim: VolumeClaim) -> _Match | None:
        """The volume that is kept for this claim, if there is one."""
        own = [each for each in self._book.own_volumes(claim) if fits(each, claim)]
        if not own:
            return None
        places = np.where(self._nodes.of(own[0].affinity), 0, NO_VOLUME)
        return _Match(claim, (own[0].name,), places)

    def _free_match(self, claim: VolumeClaim, others: list[_Match]) -> _Match:
        """The smallest free volume on each node, beside what the pod's other claims would get."""
        pool = self._pools.of(claim.storage_class)
        taken = [each.places for each in others if each.names is pool.names]
        places = pool.smallest(claim, taken, self._nodes.count)
        return _Match(claim, pool.names, places)

    def _provisioning(self, claim: VolumeClaim) -> Mask:
        """The nodes for which a volume can be provisioned for a claim."""
        found = self._book.classes.get(claim.storage_class)
        if found is None or not found.provisions:
            return self._nodes.none()
        open_to = self._nodes.provisioning(found.topologies)
        if not claim.size or not self._book.tracks_capacity(found.provisioner):
            return open_to
        enough = self._nodes.none()
        for capacity in self._book.capacities(claim.storage_class):
            if capacity.most >= claim.size:
                enough |= self._nodes.reached_by(capacity)
        return open_to & enough

    # What it gets, and what is in its way.

    def choose(self, rules: PodRules, node: str) -> tuple[VolumeBinding, ...]:
        """What becomes of the pod's unbound claims if it starts on this node."""
        self._follow()
        slot, found = self._slots[node], dict[str, VolumeBinding]()
        _, unbound = self._claims(rules)
        for claim in unbound:
            if self._book.is_provisioned(claim) is not None:
                found[claim.path] = VolumeBinding(claim.path)
        for match in self._matches(unbound):
            place = match.places.item(slot)
            name = None if place == NO_VOLUME else match.names[place]
            found.setdefault(match.claim.path, VolumeBinding(match.claim.path, name))
        return tuple(found.values())

    def in_the_way(self, rules: PodRules, node: str) -> list[str]:
        """The pods (uids) without which more would be possible for the pod on this node.

        Those that use its claim of one pod, wherever they are; that mount its disks there; and,
        where the node takes no more volumes of a driver, that mount volumes of it there. What is
        possible without some of them, `admits` says while they are set aside.
        """
        self._follow()
        slot, csi = self._slots[node], self._csi(rules)
        full = {each.driver for each in csi if self._counts.short([each], slot)}
        if csi and self._counts.short(csi, slot):
            full = {each.driver for each in csi}
        found: dict[str, None] = {}
        for use in rules.volumes:
            claim = self._book.claims.get(use.claim)
            if claim is not None and claim.one_pod:
                for place in self._book.users.get(use.claim, ()):
                    found.update(dict.fromkeys(self._users_of(use.claim, place)))
        for uid, other in self._mounts_on(node):
            drivers = {each.driver for use in other if (each := self._book.csi_of(use)) is not None}
            if drivers & full or any(_conflict(a, b) for a in rules.volumes for b in other):
                found[uid] = None
        return sorted(found)

    def _csi(self, rules: PodRules) -> list[CsiVolume]:
        return [each for use in rules.volumes if (each := self._book.csi_of(use)) is not None]

    def _mounts_on(self, node: str) -> Iterator[tuple[str, tuple[VolumeUse, ...]]]:
        """The pods on a node that have volumes, and these."""
        ledger = self._ledger
        for uid in ledger.by_node.get(self._slots[node], ()) if node in self._slots else ():
            uses = ledger.entries[uid].booking.rules.volumes
            if uses:
                yield uid, uses

    def _users_of(self, claim: str, node: str) -> Iterator[str]:
        """The pods on a node that use a claim."""
        for uid, uses in self._mounts_on(node):
            if any(use.claim == claim for use in uses):
                yield uid


def _conflict(one: VolumeUse, other: VolumeUse) -> bool:
    """Do both mount the same disk, and one of them not only to read it?"""
    if one.disk is None or other.disk is None:
        return False
    same = not set(one.disk.names).isdisjoint(other.disk.names)
    return same and not (one.disk.read_only and other.disk.read_only)
