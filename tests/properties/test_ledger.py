"""The ledger: after any operations, in any order, the columns are the fold of the entries."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Booking, Ledger, Stage
from aliquot.engine.books.quota_tree import OUTSIDE, ROOT, QuotaTree
from aliquot.engine.columns import Columns, Resources, Slots, Vector
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.quota import Quota
from aliquot.errors import LedgerError
from tests.campaign import examples

UIDS = st.sampled_from([f"pod-{i}" for i in range(5)])
NODES = st.sampled_from(["n1", "n2", "n3"])
QUOTAS = st.sampled_from([None, "a", "b", "b1"])
AMOUNTS = st.one_of(st.integers(1, 9), st.sampled_from([2**61, LIMIT]))
VECTORS: st.SearchStrategy[Vector] = st.dictionaries(st.integers(0, 2), AMOUNTS).map(
    lambda amounts: tuple(amounts.items())
)
PARENTS = {"a": None, "b": None, "b1": "b"}
Tried = list[tuple[str, str | None]]
"""Pods, each with the node to book it on, or None to release it."""
TRIED: st.SearchStrategy[Tried] = st.lists(st.tuples(UIDS, st.none() | NODES), max_size=4)


class LedgerMachine(RuleBasedStateMachine):
    """Random bookings, against a model that only remembers the last word on each pod."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = self.build()
        self.model: dict[str, tuple[Booking, Stage]] = {}

    def build(self) -> Ledger:
        resources = Resources()
        for name in ("cpu", "memory", "nvidia.com/gpu"):
            resources.row(name)
        self.tree = QuotaTree(resources)
        for name, parent in PARENTS.items():
            self.tree.set(Quota(name, parent=parent))
        self.nodes = Slots()
        self.changes = Changes()
        return Ledger(resources, self.tree, self.nodes, self.changes)

    @rule(uid=UIDS, quota=QUOTAS, charge=VECTORS)
    def wait(self, uid: str, quota: str | None, charge: Vector) -> None:
        booking = Booking(quota, charge)
        self.ledger.wait(uid, booking)
        self.ledger.wait(uid, booking)
        self.model[uid] = (booking, Stage.WAITING)

    @rule(uid=UIDS, node=NODES, quota=QUOTAS, room=VECTORS, charge=VECTORS)
    def hold(self, uid: str, node: str, quota: str | None, room: Vector, charge: Vector) -> None:
        booking = Booking(quota, charge, node, room)
        self.ledger.hold(uid, booking)
        self.ledger.hold(uid, booking)
        self.model[uid] = (booking, Stage.HELD)

    @rule(uid=UIDS, node=NODES, quota=QUOTAS, room=VECTORS, charge=VECTORS)
    def reserve(self, uid: str, node: str, quota: str | None, room: Vector, charge: Vector) -> None:
        booking = Booking(quota, charge, node, room)
        before = self.model.get(uid)
        try:
            self.ledger.assume(uid, booking)
            self.ledger.assume(uid, booking)
        except LedgerError:
            assert before is not None
            assert before[1] >= Stage.ASSUMED
            assert before[0] != booking
        else:
            stage = max(before[1], Stage.ASSUMED) if before else Stage.ASSUMED
            self.model[uid] = (booking, stage)

    @rule(uid=UIDS, node=NODES, room=VECTORS)
    def start(self, uid: str, node: str, room: Vector) -> None:
        """A pod that waits is assumed, and its quotas are charged what it has requested."""
        before = self.model.get(uid)
        if before is not None and before[1] is Stage.WAITING:
            booking = before[0]._replace(node=node, room=room)
            requests = len(self.changes.requests)
            self.ledger.assume(uid, booking)
            self.model[uid] = (booking, Stage.ASSUMED)
            assert len(self.changes.requests) == requests, "its quotas' request is as before"

    @rule(uid=UIDS, node=NODES, quota=QUOTAS, room=VECTORS, charge=VECTORS)
    def commit(self, uid: str, node: str, quota: str | None, room: Vector, charge: Vector) -> None:
        booking = Booking(quota, charge, node, room)
        self.ledger.commit(uid, booking)
        self.ledger.commit(uid, booking)
        self.model[uid] = (booking, Stage.COMMITTED)

    @rule(uid=UIDS)
    def release(self, uid: str) -> None:
        self.ledger.release(uid)
        self.ledger.release(uid)
        self.model.pop(uid, None)

    @rule(uid=UIDS, quota=QUOTAS)
    def move(self, uid: str, quota: str | None) -> None:
        if uid in self.model:
            booking, stage = self.model[uid]
            self.ledger.move(uid, quota)
            self.ledger.move(uid, quota)
            self.model[uid] = (booking._replace(quota=quota), stage)

    @rule(aside=st.sets(UIDS), tried=TRIED, inner=TRIED, inner_kept=st.booleans())
    def try_out(self, aside: set[str], tried: Tried, inner: Tried, inner_kept: bool) -> None:
        """Whatever is tried and not kept is taken back, and nothing is reported as changed."""
        logs, releases = (self.changes.requests, self.changes.freed), self.ledger.releases
        lengths = [len(log) for log in logs]
        outer = self.ledger.speculate(asking=False)
        held = [uid for uid in sorted(aside) if uid in self.ledger.holding]
        outer.set_aside(held)
        assert not set(held) & set(self.ledger.entries)
        self.book_freely(tried)
        within = self.ledger.speculate(asking=True)
        self.book_freely(inner)
        if inner_kept:
            within.keep()
        before = dict(self.ledger.entries)
        self.ledger.settle(within)
        assert not inner_kept or dict(self.ledger.entries) == before
        self.check_columns()
        self.ledger.settle(outer)
        assert [len(log) for log in logs] == lengths
        assert self.ledger.releases == releases

    @rule(aside=st.sets(UIDS), tried=TRIED)
    def try_and_keep(self, aside: set[str], tried: Tried) -> None:
        """What is tried and kept stays; what was set aside and not booked anew is back."""
        freed = self.changes.freed.cursor()
        held = {uid: self.ledger.entries[uid] for uid in aside if uid in self.ledger.holding}
        speculation = self.ledger.speculate(asking=False)
        speculation.set_aside(held)
        self.book_freely(tried)
        speculation.keep()
        booked = {uid: (e.booking, e.stage) for uid, e in self.ledger.entries.items()}
        self.ledger.settle(speculation)
        self.model.update(booked)
        for uid in {*self.model} - {*booked, *held}:
            del self.model[uid]
        news = [each.nodes for each in freed.read()]
        assert all((held[uid].node,) in news for uid in held if uid in booked)
        self.changes.trim()

    def book_freely(self, tried: Tried) -> None:
        for uid, node in tried:
            if node is None:
                self.ledger.release(uid)
            elif uid not in self.ledger.entries or self.ledger.entries[uid].stage < Stage.ASSUMED:
                self.ledger.assume(uid, Booking("a", ((0, 1),), node, ((0, 1), (2, 3))))
            else:
                self.ledger.hold(uid, Booking(None, ((1, 2),), node, ((1, 5),)))

    @rule()
    def restart(self) -> None:
        """Forget everything, and book again what the cluster would tell."""
        self.ledger = self.build()
        for uid, (booking, stage) in sorted(self.model.items(), reverse=True):
            if stage >= Stage.ASSUMED:
                self.model[uid] = (booking, Stage.COMMITTED)
                self.ledger.commit(uid, booking)
            else:
                waiting = Booking(booking.quota, booking.charge)
                self.model[uid] = (waiting, Stage.WAITING)
                self.ledger.wait(uid, waiting)

    @invariant()
    def entries_are_the_model(self) -> None:
        entries = self.ledger.entries
        assert {uid: (e.booking, e.stage) for uid, e in entries.items()} == self.model
        held = {uid for uid, (_, stage) in self.model.items() if stage is Stage.HELD}
        assert set(self.ledger.holding) == held
        assert self.check_columns()

    def check_columns(self) -> bool:
        ledger = self.ledger
        columns = (ledger.wanted, ledger.held, ledger.used, ledger.taken)
        for column, sums, slots in zip(
            columns, ledger.fold(), (self.tree.slots,) * 3 + (self.nodes,), strict=True
        ):
            self.same(column, sums, slots)
        return True

    def same(self, column: Columns, sums: dict[tuple[int, int], int], slots: Slots) -> None:
        for row in range(3):
            for slot in range(len(slots)):
                assert column.get(row, slot) == min(sums.get((row, slot), 0), LIMIT)

    @invariant()
    def quotas_add_up(self) -> None:
        """By hand: a quota's usage is its own pods' and its children's; all pods are somewhere."""
        for row in range(3):
            used = dict.fromkeys([*PARENTS, ROOT, OUTSIDE], 0)
            for booking, stage in self.model.values():
                amount = dict(booking.charge).get(row, 0) if stage >= Stage.ASSUMED else 0
                for account in self.accounts(booking.quota):
                    used[account] += amount
            for account, amount in used.items():
                have = self.ledger.used.get(row, self.tree.slots[account])
                assert have == min(amount, LIMIT)

    @staticmethod
    def accounts(quota: str | None) -> list[str]:
        if quota is None:
            return [OUTSIDE]
        above = PARENTS[quota]
        return [quota, ROOT] if above is None else [quota, above, ROOT]


LedgerMachine.TestCase.settings = settings(
    max_examples=examples(150), stateful_step_count=30, deadline=None
)
TestLedger = LedgerMachine.TestCase
