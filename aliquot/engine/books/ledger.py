"""The ledger: what every pod requests and holds, in one book of record keyed by pod uid.

An entry says what a pod takes on a node and what its quota is charged. Its stage is *waiting* (it
only requests), *held* (capacity and quota are held for it), *assumed* (the engine has decided to
bind it) or *committed* (the cluster says it is bound). The usage of every quota and node is the
fold of the entries; the columns are that fold, kept up to date entry by entry. The booking itself
is kept, so that exactly it is taken back, however the pod has changed since. The order of entries
is no part of the state: code that acts on them in order sorts them.

Each operation is atomic and may be repeated without harm. Bookings can be tried: what is booked
from `speculate` to `settle` is taken back, unless it is kept (see `State.speculating`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from aliquot.engine.books.changes import Changes, Freed
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Columns, Resources, Slots, Vector
from aliquot.engine.model.gpu import Taken
from aliquot.engine.model.label_index import Labels
from aliquot.engine.model.pod_rules import NO_RULES, PodRules
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.volumes import VolumeBinding, claim_news, volume_news
from aliquot.errors import LedgerError

NOWHERE = -1
"""The node slot of an entry without a node."""


class Tally(Protocol):
    """A further account of bookings, beside quotas and nodes: GPUs, or sums of a policy."""

    def post(self, booking: "Booking", sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""


class NodeTally(Protocol):
    """A further account of bookings on nodes: of what else they do there but take room."""

    def post(self, booking: "Booking", sign: int, held: bool) -> None:
        """Count a booking (sign +1), or stop counting it (-1); `held`: it is a nomination."""


class Stage(IntEnum):
    """How firm a booking is."""

    WAITING = 0
    HELD = 1
    ASSUMED = 2
    COMMITTED = 3


class Booking(NamedTuple):
    """What a pod takes: `room` on a node (none while it waits), and a `charge` in a quota.

    `namespace`, `gang` and what follows are the pod's; on a node, other pods may be near or far
    from it by its `labels` and `rules`. `volumes` are those chosen for its unbound claims.
    """

    quota: str | None
    charge: Vector
    node: str | None = None
    room: Vector = ()
    namespace: str = ""
    gang: str | None = None
    gpu: Taken | None = None
    preemptible: bool = True
    labels: Labels = ()
    rules: PodRules = NO_RULES
    terminating: bool = False
    volumes: tuple[VolumeBinding, ...] = ()

    @property
    def volume_news(self) -> tuple[str, ...]:
        """What may be free once it ends: its claims, and the volumes chosen for them."""
        claims = (claim_news(use.claim) for use in self.rules.volumes if use.claim)
        chosen = (volume_news(each.volume) for each in self.volumes if each.volume is not None)
        return (*claims, *chosen)


@dataclass(slots=True)
class Entry:
    """A booking, its stage, and the slots of the node and the quotas that it counts in."""

    booking: Booking
    stage: Stage
    node: int
    path: tuple[int, ...]


class Speculation:
    """Bookings that are tried, and what was booked before; see `State.speculating`."""

    def __init__(self, ledger: "Ledger", asking: bool, releases: int, changes: Changes) -> None:
        self._ledger = ledger
        self.asking = asking
        """Is it to answer a question?"""
        self.kept = False
        self.releases = releases
        self.requests, self.freed = len(changes.requests), len(changes.freed)
        """How far these topics of the change log went when it began."""
        self.before: dict[str, Entry | None] = {}
        """The entries as they were, of all pods that were booked in it."""
        self.aside: dict[str, Entry] = {}
        """The entries that were set aside."""

    def set_aside(self, uids: Iterable[str]) -> None:
        """Leave these bookings out of all sums until the end, as if they did not exist."""
        for uid in uids:
            self.aside[uid] = self._ledger.entries[uid]
            self._ledger.release(uid)

    def keep(self) -> None:
        """Keep what was booked in it; what was set aside and not booked anew is put back."""
        self.kept = True


class Ledger:
    """All bookings and their fold: `wanted`, `held`, `used` over quotas, `taken` over nodes."""

    def __init__(
        self, resources: Resources, tree: QuotaTree, nodes: Slots, changes: Changes
    ) -> None:
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
        self.node_tallies: list[NodeTally] = []
        """The same, of those on nodes."""
        self.releases = 0
        """How many bookings on nodes were released so far: refusals hold until this grows."""
        self._changes = changes
        self._note_request = changes.requests.append
        self._note_usage = changes.usage.append
        self._note_node = changes.nodes.append
        self._speculations: list[Speculation] = []

    @property
    def speculative(self) -> bool:
        """Are bookings being tried, so that usage may not be the cluster's?"""
        return bool(self._speculations)

    @property
    def asking(self) -> bool:
        """Are bookings being tried to answer a question, not to decide?"""
        return any(each.asking for each in self._speculations)

    @property
    def differs(self) -> bool:
        """Are bookings being tried that are others than before?"""
        return any(each.before for each in self._speculations)

    @property
    def tentative(self) -> bool:
        """Are there bookings that may be taken back, or is a question asked?

        Then no refusal and no capacity that was found may be remembered.
        """
        return self.differs or self.asking

    def wait(self, uid: str, booking: Booking) -> None:
        """Book what a pending pod requests; whatever was held for it is released."""
        self._book(uid, booking, Stage.WAITING)

    def hold(self, uid: str, booking: Booking) -> None:
        """Hold capacity on a node, and quota, for a pod that is nominated to it."""
        self._book(uid, booking, Stage.HELD)

    def assume(self, uid: str, booking: Booking) -> None:
        """Book a decision to bind, before the cluster confirms it."""
        entry = self.entries.get(uid)
        if entry is None or entry.stage < Stage.ASSUMED:
            if entry is None or not self._start(uid, entry, booking):
                self._put(uid, booking, Stage.ASSUMED)
        elif entry.booking != booking:
            raise LedgerError(f"pod {uid} is already booked on {entry.booking.node}")

    def commit(self, uid: str, booking: Booking) -> None:
        """Book what the cluster says; it replaces whatever was assumed."""
        entry = self.entries.get(uid)
        if entry is not None and entry.stage is Stage.ASSUMED and entry.booking == booking:
            entry.stage = Stage.COMMITTED
        else:
            self._book(uid, booking, Stage.COMMITTED)

    def load(self, bookings: Mapping[str, Booking]) -> None:
        """Commit bookings on nodes, of pods that have none, many at once: see `pod_load`.

        The columns are added to once for all bookings alike, and each change is reported once.
        """
        assert not self._speculations, "what is tried is taken back one by one"
        charges, rooms = dict[Vector, list[int]](), dict[Vector, list[int]]()
        quotas, nodes = dict[int, None](), dict[int, None]()
        for uid, booking in bookings.items():
            assert booking.node is not None
            path, node = self._tree.path(booking.quota), self._nodes.take(booking.node)
            self.entries[uid] = Entry(booking, Stage.COMMITTED, node, path)
            self.by_quota.setdefault(booking.quota, {})[uid] = None
            self.by_node.setdefault(node, {})[uid] = None
            charges.setdefault(booking.charge, []).extend(path)
            rooms.setdefault(booking.room, []).append(node)
            quotas[path[0]] = nodes[node] = None
            for tally in self.tallies:
                tally.post(booking, +1)
            for node_tally in self.node_tallies:
                node_tally.post(booking, +1, False)
        self.used.add_all(charges)
        self.taken.add_all(rooms)
        self._changes.requests.extend(quotas)
        self._changes.usage.extend(quotas)
        self._changes.nodes.extend(nodes)

    def change(self, uid: str, booking: Booking) -> None:
        """Book a pod anew that has changed, at the stage that it is in."""
        self._book(uid, booking, self.entries[uid].stage)

    def release(self, uid: str) -> None:
        """Release a booking; does nothing if there is none."""
        if self._speculations:
            self._speculations[-1].before.setdefault(uid, self.entries.get(uid))
        self._remove(uid)

    def move(self, uid: str, quota: str | None) -> None:
        """Charge a pod to another quota, or to the same along a path that has changed."""
        entry = self.entries[uid]
        if entry.booking.quota != quota or entry.path != self._tree.path(quota):
            self._put(uid, entry.booking._replace(quota=quota), entry.stage)

    def speculate(self, asking: bool) -> Speculation:
        """Begin to try bookings; `asking` only to answer a question."""
        found = Speculation(self, asking, self.releases, self._changes)
        self._speculations.append(found)
        return found

    def settle(self, speculation: Speculation) -> None:
        """Take back what was tried last, unless it is kept.

        What is as before is not reported: no claim is woken, no quota's request has changed.
        """
        last = self._speculations.pop()
        assert last is speculation, "the last begun is settled first"
        before = speculation.before
        if speculation.kept:
            aside = speculation.aside.items()
            before = {uid: entry for uid, entry in aside if uid not in self.entries}
        for uid, entry in before.items():
            if self.entries.get(uid) is not entry:
                self._remove(uid)
                if entry is not None:
                    self.by_quota.setdefault(entry.booking.quota, {})[uid] = None
                    self._enter(uid, entry)
        self.releases = speculation.releases
        self._changes.requests.truncate(speculation.requests)
        self._changes.freed.truncate(speculation.freed)
        if speculation.kept:
            self._report_kept(speculation)

    def _report_kept(self, speculation: Speculation) -> None:
        """Report what has changed by a speculation that was kept."""
        for uid, old in speculation.before.items():
            new = self.entries.get(uid)
            if new is old:
                continue
            if self._speculations:
                self._speculations[-1].before.setdefault(uid, old)
            if _request(new) != _request(old):
                for each in (old, new):
                    if each is not None:
                        self._note_request(each.path[0])
            if old is not None and old.node != NOWHERE:
                self.releases += 1
                self._report_freed(old)

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

    def _book(self, uid: str, booking: Booking, stage: Stage) -> None:
        entry = self.entries.get(uid)
        if entry is None or entry.booking != booking or entry.stage is not stage:
            self._put(uid, booking, stage)

    def _put(self, uid: str, booking: Booking, stage: Stage) -> None:
        """Replace the booking of this pod."""
        path = self._tree.path(booking.quota)
        node = NOWHERE if booking.node is None else self._nodes.take(booking.node)
        old = self.entries.get(uid)
        if self._speculations:
            self._speculations[-1].before.setdefault(uid, old)
        if old is not None and old.node == NOWHERE and old.booking.quota == booking.quota:
            del self.entries[uid]
            self._post(old, -1)
            if old.booking.charge != booking.charge or old.path != path:
                self._note_request(path[0])
        else:
            self._remove(uid)
            self.by_quota.setdefault(booking.quota, {})[uid] = None
            self._note_request(path[0])
        self._enter(uid, Entry(booking, stage, node, path))

    def _start(self, uid: str, old: Entry, booking: Booking) -> bool:
        """Assume a pod that waits, while what its quotas are charged stays; False if it does not.

        The same as to take the one booking back and to enter the other, in one step: most bookings
        that are decided are this.
        """
        before, path, charge = old.booking, old.path, booking.charge
        if old.stage is not Stage.WAITING or booking.node is None:
            return False
        if before.charge != charge or before.quota != booking.quota:
            return False
        if path != self._tree.path(booking.quota):
            return False
        node = self._nodes.take(booking.node)
        if self._speculations:
            self._speculations[-1].before.setdefault(uid, old)
        entry = self.entries[uid] = Entry(booking, Stage.ASSUMED, node, path)
        self._on_node(node)[uid] = None
        for tally in self.tallies:
            tally.post(booking, +1)
        self._note_usage(path[0])
        if not self.wanted.move(self.used, path, charge):
            for slot in path:
                self._refold(self.wanted, slot, charge)
        self._take_room(entry, +1)
        return True

    def _remove(self, uid: str) -> None:
        entry = self.entries.pop(uid, None)
        if entry is None:
            return
        del self.by_quota[entry.booking.quota][uid]
        self._note_request(entry.path[0])
        if entry.node != NOWHERE:
            del self.by_node[entry.node][uid]
            if self.holding.pop(uid, uid) is None:
                del self.holding_in[entry.booking.quota][uid]
        self._post(entry, -1)

    def _enter(self, uid: str, entry: Entry) -> None:
        self.entries[uid] = entry
        if entry.node != NOWHERE:
            self._on_node(entry.node)[uid] = None
            if entry.stage is Stage.HELD:
                self.holding[uid] = None
                self.holding_in.setdefault(entry.booking.quota, {})[uid] = None
                self._changes.held.append(uid)
        self._post(entry, +1)

    def _post(self, entry: Entry, sign: int) -> None:
        booking = entry.booking
        charged = self._charged[entry.stage]
        if entry.stage >= Stage.HELD:
            for tally in self.tallies:
                tally.post(booking, sign)
        self._note_usage(entry.path[0])
        for slot in entry.path:
            if not charged.add(slot, booking.charge, sign):
                self._refold(charged, slot, booking.charge)
        if entry.node == NOWHERE:
            return
        self._take_room(entry, sign)
        if sign < 0:
            self.releases += 1
            self._report_freed(entry)

    def _take_room(self, entry: Entry, sign: int) -> None:
        """Count a booking on its node (sign +1), or stop counting it (-1)."""
        booking, node = entry.booking, entry.node
        for tally in self.node_tallies:
            tally.post(booking, sign, entry.stage is Stage.HELD)
        if not self.taken.add(node, booking.room, sign):
            self._refold(self.taken, node, booking.room)
        self._note_node(node)

    def _on_node(self, node: int) -> dict[str, None]:
        """The pods that are booked on a node."""
        found = self.by_node.get(node)
        if found is None:
            found = self.by_node[node] = {}
        return found

    def _report_freed(self, entry: Entry) -> None:
        """Report as freed what this entry held."""
        gpus = None if entry.booking.gpu is None else entry.booking.namespace
        news = entry.booking.volume_news if entry.booking.rules.volumes else ()
        self._changes.freed.append(Freed((entry.node,), entry.path, gpus, news))

    def _refold(self, columns: Columns, slot: int, vector: Vector) -> None:
        """Add up cells anew: from a saturated one nothing can be subtracted."""
        which = (self.wanted, self.held, self.used, self.taken).index(columns)
        sums = self.fold()[which]
        for row, _ in vector:
            columns.data[row, slot] = min(sums.get((row, slot), 0), LIMIT)


def _request(entry: Entry | None) -> tuple[object, ...]:
    """What of an entry counts in the request of its quota."""
    return () if entry is None else (entry.path, entry.booking.charge)
