"""Who asks for what and who holds what: the one book of record, keyed by pod uid.

An entry says what a pod takes on a node and what it is charged in its quota. It *waits* (it only
asks), is *held* (room and right are kept for it), *reserved* (we decided to bind it) or *committed*
(the cluster says it is bound). Usage of every quota and node is the fold of the entries; the
columns are that fold, kept up to date entry by entry. What was booked is remembered, so that
exactly that is taken back, whatever has become of the pod since.

Each operation is atomic and may be repeated without harm.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Columns, Resources, Slots, Vector
from aliquot.engine.model.gpu import Taken
from aliquot.engine.model.quantity import LIMIT
from aliquot.errors import LedgerError

NOWHERE = -1


class Tally(Protocol):
    """Counts bookings in other accounts than the quotas'."""

    def post(self, booking: "Booking", sign: int) -> None:
        """Count a booking, or no longer."""


class Stage(IntEnum):
    """How firm a booking is."""

    WAITING = 0
    HELD = 1
    ASSUMED = 2
    COMMITTED = 3


class Booking(NamedTuple):
    """What a pod takes: room on a node (none while it waits), and a charge in a quota.

    `namespace` and `gang` say on whose behalf.
    """

    quota: str | None
    charge: Vector
    node: str | None = None
    room: Vector = ()
    namespace: str = ""
    gang: str | None = None
    gpu: Taken | None = None


@dataclass(slots=True)
class Entry:
    """A booking, how firm it is, and the slots it was booked in."""

    booking: Booking
    stage: Stage
    node: int
    path: tuple[int, ...]


class Ledger:
    """All bookings and their fold: `wanted`, `held`, `used` over quotas, `taken` over nodes."""

    def __init__(self, resources: Resources, tree: QuotaTree, nodes: Slots) -> None:
        self._tree = tree
        self._nodes = nodes
        self.entries: dict[str, Entry] = {}
        self.by_node: dict[int, dict[str, None]] = {}
        self.by_quota: dict[str | None, dict[str, None]] = {}
        self.holding: dict[str, None] = {}
        self.holding_in: dict[str | None, dict[str, None]] = {}
        self.wanted = Columns(resources, tree.slots)
        self.held = Columns(resources, tree.slots)
        self.used = Columns(resources, tree.slots)
        self.taken = Columns(resources, nodes)
        self._charged = (self.wanted, self.held, self.used, self.used)
        self.tallies: list[Tally] = []
        """Whoever wants to know what is held, and on whose behalf."""
        self.exclusions = 0
        """How many times something is left out of account just now."""
        self.changed_requests: dict[int, None] = {}
        """The quotas (by slot) whose own pods ask for more or less than they did; see `shares`."""
        self.changed_usage: dict[int, None] = {}
        """The quotas (by slot) that use more or less than they did."""
        self.changed_nodes: list[int] = []
        """The nodes whose room has changed, in order; see `room`."""
        self.releases = 0
        """How often room was given back, so far."""
        self.freed_nodes: set[int] = set()
        self.freed_quotas: set[int] = set()
        self.freed_gpus: set[str] = set()
        """Where something was given back since the waiting claims were last woken; the last are the
        namespaces that may use more of GPUs than they did."""

    def wait(self, uid: str, booking: Booking) -> None:
        """Count what a pod asks for; whatever was held for it is given up."""
        self._book(uid, booking, Stage.WAITING)

    def hold(self, uid: str, booking: Booking) -> None:
        """Keep room and right for a pod that is to start here."""
        self._book(uid, booking, Stage.HELD)

    def assume(self, uid: str, booking: Booking) -> None:
        """Book a decision of ours, before the cluster confirms it."""
        entry = self.entries.get(uid)
        if entry is not None and entry.stage >= Stage.ASSUMED:
            if entry.booking != booking:
                raise LedgerError(f"pod {uid} is already booked on {entry.booking.node}")
            return
        self._put(uid, booking, Stage.ASSUMED)

    def commit(self, uid: str, booking: Booking) -> None:
        """Book what the cluster says; it is right, whatever we had reserved."""
        entry = self.entries.get(uid)
        if entry is not None and entry.stage is Stage.ASSUMED and entry.booking == booking:
            entry.stage = Stage.COMMITTED
        else:
            self._book(uid, booking, Stage.COMMITTED)

    def release(self, uid: str) -> None:
        """Take a booking back; nothing happens if there is none."""
        entry = self.entries.pop(uid, None)
        if entry is None:
            return
        del self.by_quota[entry.booking.quota][uid]
        self.changed_requests[entry.path[0]] = None
        if entry.node != NOWHERE:
            del self.by_node[entry.node][uid]
            if self.holding.pop(uid, uid) is None:
                del self.holding_in[entry.booking.quota][uid]
        self._post(entry, -1)

    def move(self, uid: str, quota: str | None) -> None:
        """Charge a pod to another quota, or along a path that has changed."""
        entry = self.entries[uid]
        if entry.booking.quota != quota or entry.path != self._tree.path(quota):
            self._put(uid, entry.booking._replace(quota=quota), entry.stage)

    def restore(self, entries: Mapping[str, Entry | None]) -> None:
        """Put entries back as they were, without waking anybody: nothing was there to take.

        Whoever asks for as much as before has not asked for anything.
        """
        freed, asked = self._freed(), self.changed_requests.copy()
        gains = self.releases
        for uid, entry in entries.items():
            now = self.entries.get(uid)
            self.release(uid)
            if entry is not None:
                self.by_quota.setdefault(entry.booking.quota, {})[uid] = None
                self._enter(uid, entry)
            if _asks(now) != _asks(entry):
                asked.update({each.path[0]: None for each in (now, entry) if each is not None})
        self.freed_nodes, self.freed_quotas, self.freed_gpus = freed
        self.releases = gains
        self._ask_again(asked)

    @contextmanager
    def excluding(self, uids: Iterable[str]) -> Iterator[None]:
        """Leave some held bookings out of account for a while; those booked anew stay so."""
        excluded = {uid: self.entries[uid] for uid in uids}
        freed, asked = self._freed(), self.changed_requests.copy()
        for uid in excluded:
            self.release(uid)
        self.freed_nodes, self.freed_quotas, self.freed_gpus = freed
        self._ask_again(asked)
        self.exclusions += 1
        try:
            yield
        finally:
            self.exclusions -= 1
            booked = [uid for uid in excluded if uid in self.entries]
            asked = self.changed_requests | {excluded[uid].path[0]: None for uid in booked}
            self.restore({uid: old for uid, old in excluded.items() if uid not in booked})
            self._ask_again(asked)
            for uid in booked:  # what was held for these elsewhere is free for others now
                self._give_back(excluded[uid])

    def fold(self) -> tuple[dict[tuple[int, int], int], ...]:
        """Add everything up anew by row and slot: wanted, held and used over quotas, taken."""
        sums: tuple[dict[tuple[int, int], int], ...] = ({}, {}, {}, {})
        wanted, held, used, taken = sums
        for entry in self.entries.values():
            charged = (wanted, held, used, used)[entry.stage]
            for slot in entry.path:
                for row, amount in entry.booking.charge:
                    charged[row, slot] = charged.get((row, slot), 0) + amount
            for row, amount in entry.booking.room:
                taken[row, entry.node] = taken.get((row, entry.node), 0) + amount
        return sums

    def _freed(self) -> tuple[set[int], set[int], set[str]]:
        return self.freed_nodes.copy(), self.freed_quotas.copy(), self.freed_gpus.copy()

    def _ask_again(self, asked: dict[int, None]) -> None:
        """These, and nobody else, ask for more or less than they did."""
        self.changed_requests.clear()
        self.changed_requests.update(asked)

    def _book(self, uid: str, booking: Booking, stage: Stage) -> None:
        entry = self.entries.get(uid)
        if entry is None or entry.booking != booking or entry.stage is not stage:
            self._put(uid, booking, stage)

    def _put(self, uid: str, booking: Booking, stage: Stage) -> None:
        """Replace whatever was booked for this pod."""
        path = self._tree.path(booking.quota)
        node = NOWHERE if booking.node is None else self._nodes.take(booking.node)
        old = self.entries.get(uid)
        if old is not None and old.node == NOWHERE and old.booking.quota == booking.quota:
            del self.entries[uid]  # the common case: a waiting pod finds its node
            self._post(old, -1)
            if old.booking.charge != booking.charge or old.path != path:
                self.changed_requests[path[0]] = None
        else:
            self.release(uid)
            self.by_quota.setdefault(booking.quota, {})[uid] = None
            self.changed_requests[path[0]] = None
        self._enter(uid, Entry(booking, stage, node, path))

    def _enter(self, uid: str, entry: Entry) -> None:
        self.entries[uid] = entry
        if entry.node != NOWHERE:
            self.by_node.setdefault(entry.node, {})[uid] = None
            if entry.stage is Stage.HELD:
                self.holding[uid] = None
                self.holding_in.setdefault(entry.booking.quota, {})[uid] = None
        self._post(entry, +1)

    def _post(self, entry: Entry, sign: int) -> None:
        booking = entry.booking
        charged = self._charged[entry.stage]
        if entry.stage >= Stage.HELD:
            for tally in self.tallies:
                tally.post(booking, sign)
        self.changed_usage[entry.path[0]] = None
        for slot in entry.path:
            if not charged.add(slot, booking.charge, sign):
                self._refold(charged, slot, booking.charge)
        if entry.node == NOWHERE:
            return
        if not self.taken.add(entry.node, booking.room, sign):
            self._refold(self.taken, entry.node, booking.room)
        self.changed_nodes.append(entry.node)
        if sign < 0:
            self.releases += 1
            self._give_back(entry)

    def _give_back(self, entry: Entry) -> None:
        """What was booked like this can be taken by others."""
        self.freed_nodes.add(entry.node)
        self.freed_quotas.update(entry.path)
        if entry.booking.gpu is not None:
            self.freed_gpus.add(entry.booking.namespace)

    def _refold(self, columns: Columns, slot: int, vector: Vector) -> None:
        """A saturated cell cannot be subtracted from: add it up anew."""
        which = (self.wanted, self.held, self.used, self.taken).index(columns)
        sums = self.fold()[which]
        for row, _ in vector:
            columns.data[row, slot] = min(sums.get((row, slot), 0), LIMIT)


def _asks(entry: Entry | None) -> tuple[object, ...]:
    """What makes a difference to what a quota is asked for."""
    return () if entry is None else (entry.path, entry.booking.charge)
