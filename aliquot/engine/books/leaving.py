"""Terminating pods that are still bound, and what they will free.

A waiting claim may count on what they hold. A pod that has not ended in time is overdue: what it
holds no longer counts as about to be free.
"""

from collections.abc import Iterator

from aliquot.engine.books.ledger import Entry, Tally
from aliquot.engine.columns import Columns, Resources, Slots, Vector
from aliquot.engine.model.quantity import LIMIT


class Leaving:
    """Terminating pods, and what they will free: `room` over nodes, `charge` over quotas."""

    def __init__(self, resources: Resources, nodes: Slots, quotas: Slots) -> None:
        self._entries: dict[str, Entry] = {}
        self.room = Columns(resources, nodes)
        self.charge = Columns(resources, quotas)
        self.overdue: set[str] = set()
        self.tallies: list[Tally] = []
        """Further accounts of what will be freed: GPUs."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def add(self, uid: str, entry: Entry) -> None:
        """Add a bound pod that is terminating."""
        self._entries[uid] = entry
        self._post(entry, +1)

    def remove(self, uid: str) -> None:
        """Remove a pod that has ended or is not evicted after all, if it is here."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._post(entry, -1)

    def mark_overdue(self, uid: str) -> None:
        """The pod has not ended in time: no longer count on what it holds."""
        self.remove(uid)
        self.overdue.add(uid)

    def _post(self, entry: Entry, sign: int) -> None:
        room, charge = entry.booking.room, entry.booking.charge
        for tally in self.tallies:
            tally.post(entry.booking, sign)
        if not self.room.add(entry.node, room, sign):
            same = [e.booking.room for e in self._entries.values() if e.node == entry.node]
            _refold(self.room, entry.node, room, same)
        for slot in entry.path:
            if not self.charge.add(slot, charge, sign):
                same = [e.booking.charge for e in self._entries.values() if slot in e.path]
                _refold(self.charge, slot, charge, same)


def _refold(columns: Columns, slot: int, touched: Vector, vectors: list[Vector]) -> None:
    """Add up cells anew: from a saturated one nothing can be subtracted."""
    for row, _ in touched:
        total = sum(amount for vector in vectors for r, amount in vector if r == row)
        columns.data[row, slot] = min(total, LIMIT)
