"""What quotas are guaranteed of the cards of one model, and what is left of these cards.

Sums of such mins are no bound: a claim may start wherever there are cards. But cards that an unused
min needs are used last (see `fit`), and given back first (see `policies.model_reclaim`). Quotas
below one that names a model share its min: the topmost quota that names it counts.
"""

from collections import Counter

from aliquot.engine.books.capacity import Capacity
from aliquot.engine.books.changes import Changes, Cursor
from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.quota_tree import OUTSIDE, ROOT, QuotaTree
from aliquot.engine.columns import Columns, Resources, Vector
from aliquot.engine.model.quota import Quota


class ModelMins:
    """The mins of quotas by model, in amounts by row and slot."""

    def __init__(
        self,
        resources: Resources,
        tree: QuotaTree,
        ledger: Ledger,
        capacity: Capacity,
        changes: Changes,
    ) -> None:
        self._resources = resources
        self._tree = tree
        self._ledger = ledger
        self._capacity = capacity
        self._changes = changes
        self.deserved_counts = False
        """Is a queue guaranteed what its `deserved` fixes, if that is more than its min?"""
        self._moment = (-1, -1)
        self._mins: dict[int, dict[int, int]] = {}
        """By row, the min of each quota that names the model."""
        self._top: dict[int, dict[int, int]] = {}
        """By row, the topmost of these above each quota, or itself."""
        self._usage: Cursor[int] | None = None
        self._unused: dict[tuple[int, int], int] = {}
        self._total: Counter[int] = Counter()

    def __bool__(self) -> bool:
        """Does any quota have a min of a model?"""
        return bool(self._resources.models) and bool(self._read())

    def get(self, row: int, slot: int) -> int:
        """The min of a quota in a model; 0 if it names none."""
        return self._read().get(row, {}).get(slot, 0)

    def of(self, row: int) -> dict[int, int]:
        """The mins in a model, by slot of the quotas that name it."""
        return self._read().get(row, {})

    def rows(self) -> tuple[int, ...]:
        """The models in which some quota has a min."""
        return tuple(self._read())

    def idle(self, row: int) -> int:
        """The cards of a model that nodes which take pods have left, or of any other resource."""
        ledger, slots = self._ledger, self._tree.slots
        taken = sum(
            column.get(row, slots[account])
            for column in (ledger.used, ledger.held)
            for account in (ROOT, OUTSIDE)
        )
        return self._capacity.lent(row) - taken

    def leaving(self, row: int, charges: Columns) -> int:
        """Of these charges of leaving pods, the cards of a model, or of any other resource."""
        return sum(charges.get(row, self._tree.slots[each]) for each in (ROOT, OUTSIDE))

    def kept_from(self, row: int, quota: str | None) -> int:
        """The cards of a model that unused mins of other quotas need."""
        self._follow()
        top = None if quota is None else self._top[row].get(self._tree.slots[quota])
        own = 0 if top is None else self._unused[row, top]
        return self._total[row] - own

    def spares(self, charge: Vector, quota: str | None) -> bool:
        """Are there cards for this charge beyond those that unused mins of others need?"""
        mins = self._read()
        return all(
            row not in mins or self.idle(row) - self.kept_from(row, quota) >= amount
            for row, amount in charge
        )

    def refresh(self) -> None:
        """Read the log of changes, which is kept until all have read it."""
        if self._usage is not None:
            self._follow()

    def _read(self) -> dict[int, dict[int, int]]:
        moment = (self._tree.version, len(self._resources.models))
        if self._moment != moment:
            self._moment = moment
            self._mins, self._top = {}, {}
            for quota in self._tree.quotas.values():
                for row, amount in self._guaranteed(quota).items():
                    self._mins.setdefault(row, {})[self._tree.slots[quota.name]] = amount
            self._fold()
        return self._mins

    def _guaranteed(self, quota: Quota) -> dict[int, int]:
        found: dict[int, int] = {}
        for bounds in (quota.min, quota.deserved if self.deserved_counts else ()):
            for row, amount in self._resources.vector(bounds):
                if amount and row in self._resources.models:
                    found[row] = max(amount, found.get(row, 0))
        return found

    def _fold(self) -> None:
        """Work out anew what is unused."""
        tree = self._tree
        self._unused, self._total = {}, Counter()
        for row, mins in self._mins.items():
            self._top[row] = {}
            for name in tree.quotas:
                naming = [slot for slot in tree.lineage(name) if slot in mins]
                if naming:
                    self._top[row][tree.slots[name]] = naming[-1]
            for slot in set(self._top[row].values()):
                self._unused[row, slot] = 0
                self._note(row, slot)
        if self._mins and self._usage is None:
            self._usage = self._changes.usage.cursor()
        elif self._usage is not None:
            self._usage.read()

    def _follow(self) -> None:
        self._read()
        if self._usage:
            for slot in dict.fromkeys(self._usage.read()):
                for row, top in self._top.items():
                    if slot in top:
                        self._note(row, top[slot])

    def _note(self, row: int, slot: int) -> None:
        """Note what of a min is not used now."""
        ledger, before = self._ledger, self._unused.get((row, slot), 0)
        taken = ledger.used.get(row, slot)
        if ledger.holding:
            taken += ledger.held.get(row, slot)
        unused = max(self._mins[row][slot] - taken, 0)
        if unused != before:
            self._total[row] += unused - before
            self._unused[row, slot] = unused
