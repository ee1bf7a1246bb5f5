"""How many volumes of each CSI driver the pods of every node mount, and how many it takes.

Columns over the nodes, brought up to date for the nodes on which a pod with volumes has come or
gone, or a volume or limit has changed.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.model.volumes import UNLIMITED, CsiVolume
from aliquot.engine.placement.node_labels import Mask
from aliquot.engine.placement.volumes.nodes import VolumeNodes

_Handle = tuple[str, str]
"""A driver, and the handle of a volume."""


class _Driver:
    """The columns of one driver."""

    def __init__(self) -> None:
        self.used = np.zeros(0, dtype=np.int64)
        self.limit = np.zeros(0, dtype=np.int64)

    def lengthen(self, count: int) -> None:
        """Grow to this many nodes."""
        more = count - len(self.used)
        if more > 0:
            self.used = np.append(self.used, np.zeros(more, dtype=np.int64))
            self.limit = np.append(self.limit, np.full(more, UNLIMITED, dtype=np.int64))


class VolumeCounts:
    """The columns of all drivers."""

    def __init__(self, nodes: Nodes, book: Volumes, masks: VolumeNodes) -> None:
        self._nodes = nodes
        self._masks = masks
        self._book = book
        self._read = 0
        self._drivers: dict[str, _Driver] = {}
        self._mounted: dict[int, dict[_Handle, None]] = {}
        """What the pods of each node mount, by slot."""
        self._where: dict[_Handle, dict[int, None]] = {}
        self._touched: dict[int, dict[str, None]] = {}
        """The drivers whose columns are not as at the start for a slot."""

    def refresh(self, names: Iterable[str]) -> None:
        """Count anew on these nodes, and on those that have changed."""
        slots = self._nodes.slots
        changed = dict.fromkeys(self._nodes.changed_since(self._read))
        changed.update(dict.fromkeys(slots[name] for name in names if name in slots))
        self._read = self._nodes.version
        for slot in changed:
            self._recount(slot)

    def _recount(self, slot: int) -> None:
        node, book = self._nodes.slots.names[slot], self._book
        for handle in self._mounted.pop(slot, ()):
            del self._where[handle][slot]
            if not self._where[handle]:
                del self._where[handle]
        for name in self._touched.pop(slot, ()):
            self._drivers[name].used[slot] = 0
            self._drivers[name].limit[slot] = UNLIMITED
        if node is None:
            return
        mounted, attached = book.counted(node), book.attached(node)
        limits = dict(book.drivers[node].limits) if node in book.drivers else {}
        touched = dict.fromkeys((*mounted, *attached, *limits))
        for name in touched:
            driver = self._drivers.setdefault(name, _Driver())
            driver.lengthen(len(self._nodes.slots))
            here = mounted.get(name, {})
            driver.used[slot] = len({**here, **attached.get(name, {})})
            driver.limit[slot] = limits.get(name, UNLIMITED)
            for each in here:
                self._mounted.setdefault(slot, {})[name, each] = None
                self._where.setdefault((name, each), {})[slot] = None
        if touched:
            self._touched[slot] = touched

    def full(self, volumes: Iterable[CsiVolume], count: int) -> Mask:
        """The nodes that do not take these volumes beside those that are mounted there."""
        found = np.zeros(count, dtype=bool)
        by_driver: dict[str, dict[CsiVolume, None]] = {}
        for each in volumes:
            by_driver.setdefault(each.driver, {})[each] = None
        for name, asked in by_driver.items():
            driver = self._drivers.get(name)
            if driver is None:
                continue
            driver.lengthen(count)
            more = np.zeros(count, dtype=np.int64)
            for handle in dict.fromkeys((each.handle, each.plugin) for each in asked):
                more += self._counting(name, *handle, count)
            found |= (more > 0) & (driver.used[:count] + more > driver.limit[:count])
        return found

    def _counting(self, driver: str, handle: str, plugin: str, count: int) -> NDArray[np.int64]:
        """1 for each node on which this volume would be one more."""
        more = np.ones(count, dtype=np.int64)
        more[list(self._where.get((driver, handle), ()))] = 0
        return more * self._masks.migrated_from(plugin) if plugin else more

    def short(self, volumes: Iterable[CsiVolume], slot: int) -> bool:
        """Does this node not take these volumes?"""
        return bool(self.full(volumes, len(self._nodes.slots))[slot])
