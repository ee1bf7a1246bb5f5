"""The ledger: what every pod requests and holds, in one book of record keyed by pod uid.

An entry says what a pod takes on a node and what its quota is charged. Its stage is *waiting* (it
only requests), *held* (capacity and quota are held for it), *assumed* (the engine has decided to
bind it) or *committed* (the cluster says it is bound). The usage of every quota and node is the
fold of the entries; the columns are that fold, kept up to date entry by entry. The booking itself
is kept, so that exactly it is taken back, however the pod has changed since.

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
"""The node slot of an entry without a node."""


class Tally(Protocol):
    """A further account of bookings, beside quotas and nodes: GPUs, or sums of a policy."""

    def post(self, booking: "Booking", sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""


class Stage(IntEnum):
    """How firm a booking is."""

    WAITING = 0
    HELD = 1
    ASSUMED = 2
    COMMITTED = 3


class Booking(NamedTuple):
    """What a pod takes: `room` on a node (none while it waits), and a `charge` in a quota.

    `namespace` and `gang` are the pod's.
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
    """A booking, its stage, and the slots of the node and the quotas that it counts in."""

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
        """The pods for which a node is held."""
        self.holding_in: dict[str | None, dict[str, None]] = {}
        """The same, by quota."""
        self.wanted = Columns(resources, tree.slots)
        self.held = Columns(resources, tree.slots)
        self.used = Columns(resources, tree.slots)
        self.taken = Columns(resources, nodes)
        self._charged = (self.wanted, self.held, self.used, self.used)
        self.tallies: list[Tally] = []
        """Further accounts: told of every booking that is held, assumed or committed."""
        self.exclusions = 0
        """How many `excluding` blocks are open: while one is, usage is not the cluster's."""
        self.changed_requests: dict[int, None] = {}
        """The quotas (by slot) whose own request has changed; emptied by `policies.demand`."""
        self.changed_usage: dict[int, None] = {}
        """The quotas (by slot) whose usage has changed; the policy that reads a slot removes it."""
        self.changed_nodes: list[int] = []
        """The nodes (by slot) whose free capacity has changed, in order; see `free_capacity`."""
        self.releases = 0
        """How many bookings on nodes were released so far: refusals hold until this grows."""
        self.freed_nodes: set[int] = set()
        self.freed_quotas: set[int] = set()
        self.freed_gpus: set[str] = set()
        """Nodes and quotas (by slot), and namespaces with a GPU quota, where something was released
        since the waiting claims were last woken."""

    def wait(self, uid: str, booking: Booking) -> None:
        """Book what a pending pod requests; whatever was held for it is released."""
        self._book(uid, booking, Stage.WAITING)

    def hold(self, uid: str, booking: Booking) -> None:
        """Hold capacity on a node, and quota, for a pod that is nominated to it."""
        self._book(uid, booking, Stage.HELD)

    def assume(self, uid: str, booking: Booking) -> None:
        """Book a decision to bind, before the cluster confirms it."""
        entry = self.entries.get(uid)
        if entry is not None and entry.stage >= Stage.ASSUMED:
            if entry.booking != booking:
                raise LedgerError(f"pod {uid} is already booked on {entry.booking.node}")
            return
        self._put(uid, booking, Stage.ASSUMED)

    def commit(self, uid: str, booking: Booking) -> None:
        """Book what the cluster says; it replaces whatever was assumed."""
        entry = self.entries.get(uid)
        if entry is not None and entry.stage is Stage.ASSUMED and entry.booking == booking:
            entry.stage = Stage.COMMITTED
        else:
            self._book(uid, booking, Stage.COMMITTED)

    def release(self, uid: str) -> None:
        """Release a booking; does nothing if there is none."""
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
        """Charge a pod to another quota, or to the same along a path that has changed."""
        entry = self.entries[uid]
        if entry.booking.quota != quota or entry.path != self._tree.path(quota):
            self._put(uid, entry.booking._replace(quota=quota), entry.stage)

    def restore(self, entries: Mapping[str, Entry | None]) -> None:
        """Put entries back as they were, after a trial.

        No claim is woken: nothing was freed. A quota whose request is as before is not reported as
        changed.
        """
        freed, changed = self._freed(), self.changed_requests.copy()
        gains = self.releases
        for uid, entry in entries.items():
            now = self.entries.get(uid)
            self.release(uid)
            if entry is not None:
                self.by_quota.setdefault(entry.booking.quota, {})[uid] = None
                self._enter(uid, entry)
            if _request(now) != _request(entry):
                changed.update({each.path[0]: None for each in (now, entry) if each is not None})
        self.freed_nodes, self.freed_quotas, self.freed_gpus = freed
        self.releases = gains
        self._set_changed_requests(changed)

    @contextmanager
    def excluding(self, uids: Iterable[str]) -> Iterator[None]:
        """Leave these held bookings out during the block; those booked anew in it stay."""
        excluded = {uid: self.entries[uid] for uid in uids}
        freed, changed = self._freed(), self.changed_requests.copy()
        for uid in excluded:
            self.release(uid)
        self.freed_nodes, self.freed_quotas, self.freed_gpus = freed
        self._set_changed_requests(changed)
        self.exclusions += 1
        try:
            yield
        finally:
            self.exclusions -= 1
            booked = [uid for uid in excluded if uid in self.entries]
            changed = self.changed_requests | {excluded[uid].path[0]: None for uid in booked}
            self.restore({uid: old for uid, old in excluded.items() if uid not in booked})
            self._set_changed_requests(changed)
            for uid in booked:  # what was held for these before is free for other claims now
                self._report_freed(excluded[uid])

    def fold(self) -> tuple[dict[tuple[int, int], int], ...]:
        """All sums anew, by row and slot: wanted, held and used of quotas, taken of nodes."""
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

    def _set_changed_requests(self, changed: dict[int, None]) -> None:
        """Report exactly these quotas as changed."""
        self.changed_requests.clear()
        self.changed_requests.update(changed)

    def _book(self, uid: str, booking: Booking, stage: Stage) -> None:
        entry = self.entries.get(uid)
        if entry is None or entry.booking != booking or entry.stage is not stage:
            self._put(uid, booking, stage)

    def _put(self, uid: str, booking: Booking, stage: Stage) -> None:
        """Replace the booking of this pod."""
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
            self._report_freed(entry)

    def _report_freed(self, entry: Entry) -> None:
        """Report as freed what this entry held."""
        self.freed_nodes.add(entry.node)
        self.freed_quotas.update(entry.path)
        if entry.booking.gpu is not None:
            self.freed_gpus.add(entry.booking.namespace)

    def _refold(self, columns: Columns, slot: int, vector: Vector) -> None:
        """Add up cells anew: from a saturated one nothing can be subtracted."""
        which = (self.wanted, self.held, self.used, self.taken).index(columns)
        sums = self.fold()[which]
        for row, _ in vector:
            columns.data[row, slot] = min(sums.get((row, slot), 0), LIMIT)


def _request(entry: Entry | None) -> tuple[object, ...]:
    """What of an entry counts in the request of its quota."""
    return () if entry is None else (entry.path, entry.booking.charge)
