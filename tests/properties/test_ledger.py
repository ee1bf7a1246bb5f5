"""The ledger: after any operations, in any order, the columns are the fold of the entries."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

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
        return Ledger(resources, self.tree, self.nodes)

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

    @rule(uids=st.sets(UIDS))
    def lift(self, uids: set[str]) -> None:
        held = [uid for uid in sorted(uids) if uid in self.ledger.holding]
        freed = self.ledger.freed_nodes.copy(), self.ledger.freed_quotas.copy()
        with self.ledger.excluding(held):
            assert not set(held) & set(self.ledger.entries)
            self.check_columns()
        assert freed == (self.ledger.freed_nodes, self.ledger.freed_quotas)

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
