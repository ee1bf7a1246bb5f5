"""The volumes that an unbound claim could get on each node: the smallest free one that fits.

A class of local volumes has one volume and more for each node, so volumes are columns, too: which
are free, and which fit claims of one kind. A volume that is used on few nodes is there once for
each of them, as a pair of volume and node; volumes that are used on many nodes are few kinds, and
of each kind only the first ones count. So a claim costs a few numpy calls, however many volumes
and nodes there are.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.volumes import Volumes
from aliquot.engine.model.volume_fit import offers
from aliquot.engine.model.volumes import PersistentVolume, VolumeAffinity, VolumeClaim
from aliquot.engine.placement.node_labels import Mask
from aliquot.engine.placement.volumes.nodes import VolumeNodes

_FEW_NODES = 64
"""Volumes of one affinity that are used on more nodes are kept as a mask: pairs would be many."""
_MOST_KINDS = 256
"""Kinds of claims for which it is remembered which volumes fit."""
_Places = NDArray[np.int64]
NO_VOLUME = -1


class VolumePool:
    """The volumes of one class, the smallest first, equal ones by name."""

    def __init__(self, book: Volumes, nodes: VolumeNodes, storage_class: str) -> None:
        self._book = book
        self._nodes = nodes
        self._class = storage_class
        self._version = -1
        self._places: dict[str, int] = {}
        self.names: list[str] = []
        self._known: list[PersistentVolume] = []
        self._stale = True

    def note(self, name: str) -> None:
        """A volume of the class has changed, or is free, or no longer."""
        place, volume = self._places.get(name), self._book.volumes.get(name)
        if place is None or volume is None or _offer(self._known[place]) != _offer(volume):
            self._stale = True
        elif not self._stale:
            self._free[place] = self._book.is_free(volume)

    def refresh(self) -> None:
        """Lay the volumes out anew, if there are others, or other nodes."""
        if not self._stale and self._version == self._nodes.version:
            return
        book = self._book
        found = (book.volumes[name] for name in book.of_class.get(self._class, ()))
        self._known = sorted(found, key=lambda each: (each.size, each.name))
        self.names = [each.name for each in self._known]
        self._places = {name: place for place, name in enumerate(self.names)}
        self._free = np.fromiter(map(book.is_free, self._known), dtype=bool, count=len(self.names))
        self._fitting: dict[object, NDArray[np.bool_]] = {}
        self._lay_out()
        self._stale, self._version = False, self._nodes.version

    def _lay_out(self) -> None:
        """Pairs of volume and node; and the volumes that are used on many nodes, by affinity."""
        by_affinity: dict[VolumeAffinity, list[int]] = {}
        for place, volume in enumerate(self._known):
            by_affinity.setdefault(volume.affinity, []).append(place)
        volumes, slots = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._wide: list[tuple[Mask, _Places]] = []
        for affinity, places in by_affinity.items():
            mask = self._nodes.of(affinity)
            here = np.flatnonzero(mask)
            if len(here) > _FEW_NODES:
                self._wide.append((mask, np.array(places)))
            else:
                volumes.append(np.repeat(np.array(places), len(here)))
                slots.append(np.tile(here, len(places)))
        pair_volumes, pair_slots = np.concatenate(volumes), np.concatenate(slots)
        order = np.argsort(-pair_volumes, kind="stable")  # the last one written is the smallest
        self._pair_volumes, self._pair_slots = pair_volumes[order], pair_slots[order]

    def smallest(self, claim: VolumeClaim, taken: Sequence[_Places], count: int) -> _Places:
        """The place of the volume that a claim would get on each node; NO_VOLUME for none.

        Without those that the pod's other claims have `taken` there.
        """
        open_to = self._fitting_for(claim) & self._free
        found = np.full(count, len(self.names), dtype=np.int64)
        usable = open_to[self._pair_volumes]
        for other in taken:
            usable &= other[self._pair_slots] != self._pair_volumes
        found[self._pair_slots[usable]] = self._pair_volumes[usable]
        for mask, places in self._wide:
            first = places[open_to[places]][: len(taken) + 1]
            for place in first[::-1].tolist():
                better = mask & (place < found)
                for other in taken:
                    better &= other != place
                found[better] = place
        found[found == len(self.names)] = NO_VOLUME
        return found

    def _fitting_for(self, claim: VolumeClaim) -> NDArray[np.bool_]:
        """The volumes that are right for claims of this kind."""
        kind = claim.size, claim.access_modes, claim.mode, claim.attributes_class, claim.selector
        known = self._fitting.get(kind)
        if known is None:
            fitting = (offers(each, claim) for each in self._known)
            known = np.fromiter(fitting, dtype=bool, count=len(self._known))
            if len(self._fitting) >= _MOST_KINDS:
                self._fitting.clear()
            self._fitting[kind] = known
        return known


def _offer(volume: PersistentVolume) -> tuple[object, ...]:
    """What decides about a volume, but for whether it is free."""
    kind = volume.size, volume.access_modes, volume.mode, volume.attributes_class, volume.labels
    return (*kind, volume.deleted, volume.affinity, volume.storage_class)


class VolumePools:
    """The pools of all classes, up to date with the books."""

    def __init__(self, book: Volumes, nodes: VolumeNodes) -> None:
        self._book = book
        self._nodes = nodes
        self._pools: dict[str, VolumePool] = {}
        self._class_of: dict[str, str] = {}

    def note(self, names: Iterable[str]) -> None:
        """These volumes have changed, or are free, or no longer."""
        for name in names:
            volume = self._book.volumes.get(name)
            before = self._class_of.pop(name, None)
            if volume is not None:
                self._class_of[name] = volume.storage_class
            now = self._class_of.get(name)
            for storage_class in dict.fromkeys(each for each in (before, now) if each is not None):
                if storage_class in self._pools:
                    self._pools[storage_class].note(name)

    def of(self, storage_class: str) -> VolumePool:
        """The pool of a class."""
        pool = self._pools.get(storage_class)
        if pool is None:
            pool = VolumePool(self._book, self._nodes, storage_class)
            self._pools[storage_class] = pool
        pool.refresh()
        return pool
