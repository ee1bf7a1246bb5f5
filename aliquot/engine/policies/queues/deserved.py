"""What every queue deserves now: its share of what the queue above it deserves.

The share is by weight over request: no more than the queue's request and its capability, no less
than its guarantee. A queue with a fixed `deserved` gets that first, and the others share the rest.
Of a resource that some queue's `deserved` names, a queue whose `deserved` does not name it deserves
nothing but its guarantee: what it uses of it is lent. All queues together share what the nodes
have.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.columns import Columns, Vector
from aliquot.engine.model.quantity import LIMIT, per_one
from aliquot.engine.model.quota import Quota
from aliquot.engine.policies import usage
from aliquot.engine.policies.demand import Demand, Unsatisfiable
from aliquot.engine.policies.shares import ShareBook, in_use
from aliquot.engine.sharing.waterfill import floors, level
from aliquot.engine.state import State


@dataclass(slots=True)
class _Queue:
    """A queue, with its amounts by row, and the queues below it."""

    slot: int
    quota: Quota
    low: dict[int, int]
    high: dict[int, int]
    fixed: dict[int, int]
    below: list["_Queue"] = field(default_factory=list)


class Deserved(ShareBook):
    """What every queue deserves, by row and slot; `refresh` before reading."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._demand = Demand(state)
        self._top: list[_Queue] = []
        self._in_order: list[_Queue] = []
        """All queues, each after the queue above it: trees may be deeper than Python recurses."""
        self._queues: dict[int, _Queue] = {}
        self._unsatisfiable = Unsatisfiable(state, self._takes_pods)
        self._uncharged: set[int] = set()
        """The unshared quotas, and the account of pods without a quota."""
        self.unshared: list[int] = []
        self.rows: frozenset[int] = frozenset()
        """The resources that are shared: those that the nodes have, but models of cards.

        Of these, the queues that name them have a share, which is no bound of theirs."""
        self._guaranteed: dict[int, int] = {}
        """What guarantees are made of: more than the total while nodes take no new pods."""
        self.total: dict[int, int] = {}
        """What there is of them, less what is used outside the queues."""
        self.amounts = Columns(state.resources, state.tree.slots)
        """What every queue deserves."""
        self._any_guarantee = False
        self._named: frozenset[int] = frozenset()
        """The resources that the `deserved` of some queue names."""

    def get(self, row: int, slot: int) -> int:
        """What a queue deserves of a resource."""
        return self.amounts.get(row, slot)

    def refresh(self) -> list[int]:
        """Bring the shares up to date; the slots of queues whose share has changed."""
        if self._demand.changed_quotas(self._uncharged) is None:
            return []
        before = self.amounts.data.copy()
        if self._demand.tree_changed():
            self._lay_out()
        self._unsatisfiable.refresh()
        self._measure()
        for row in range(len(self._state.resources)):
            self._share_row(row)
        changed = (before != self.amounts.data).any(axis=0).nonzero()[0]
        return [int(slot) for slot in changed]

    def taken(self, row: int, slot: int) -> int:
        """What is used or nominated in a queue."""
        return usage.taken(self._state, row, slot)

    def after_leaving(self, row: int, slot: int) -> int:
        """What is used or nominated in a queue once the leaving pods are gone."""
        return usage.after_leaving(self._state, row, slot)

    def part(self, columns: Columns, row: int, slot: int) -> int:
        """An amount of a queue in the columns of the ledger."""
        return columns.get(row, slot)

    def accounts(self, quota: str) -> tuple[int, ...]:
        """The queue and those above it."""
        return self._state.tree.lineage(quota)

    def fixed(self, slot: int) -> dict[int, int]:
        """The `deserved` that a queue's spec fixes, by row."""
        return self._queues[slot].fixed

    def names(self, row: int, slot: int) -> bool:
        """Does a queue deserve a resource by its own word, or by weight, rather than not at all?"""
        return _names(row, self._queues[slot], self._named)

    def names_model(self, row: int, slot: int) -> bool:
        """Does a queue name a model of cards in guarantee, deserved or capability?"""
        queue = self._queues[slot]
        return row in queue.low or row in queue.high or row in queue.fixed

    def above(self, slot: int, charge: Vector) -> set[int]:
        """The resources in which a queue would be above deserved with this charge."""
        return {
            row
            for row, amount in charge
            if self.after_leaving(row, slot) + amount > self.get(row, slot)
        }

    def is_idle(self, row: int, amount: int, lineage: tuple[int, ...]) -> bool:
        """Is so much of a resource neither in use nor deserved by waiting claims of other queues?

        Other queues than those of this lineage.
        """
        in_use = self.after_leaving(row, self._state.tree.slots[ROOT])
        wanted = self._unused(row, lineage, lambda queue: self.get(row, queue.slot))
        return in_use + amount + wanted <= self.total[row]

    def _unused(
        self, row: int, lineage: tuple[int, ...], bound: Callable[[_Queue], int | None]
    ) -> int:
        """What queues do not use of a bound, those of this lineage and without one left out.

        A queue counts with what the queues below it do not use, if that is more.
        """
        besides, unused = set(lineage), dict[int, int]()
        for queue in reversed(self._in_order):
            below = sum(unused[each.slot] for each in queue.below)
            most = None if queue.slot in besides else bound(queue)
            own = below if most is None else most - self.taken(row, queue.slot)
            unused[queue.slot] = max(own, below)
        return sum(unused[queue.slot] for queue in self._top)

    def root(self, quota: str) -> int:
        """Queues share all nodes: there is one tree."""
        return self._state.tree.slots[ROOT]

    def in_use(self, row: int, root: int) -> int:
        """What all queues together use or are nominated for."""
        return in_use(self._state, self, row)

    def unused_guarantees(self, row: int, lineage: tuple[int, ...]) -> int:
        """The unused guarantees of queues that do not lend, other than those of this lineage."""
        if not self._any_guarantee:
            return 0
        return self._unused(
            row, lineage, lambda queue: None if queue.quota.lend else queue.low.get(row, 0)
        )

    def _lay_out(self) -> None:
        """Make the queues agree with the tree."""
        tree, vector = self._state.tree, self._state.resources.vector
        found = {
            name: _Queue(
                tree.slots[name],
                quota,
                dict(vector(quota.min)),
                dict(vector(quota.max)),
                dict(vector(quota.deserved)),
            )
            for name, quota in sorted(tree.quotas.items())
            if not quota.unshared
        }
        for queue in found.values():
            if queue.quota.parent in found:
                found[queue.quota.parent].below.append(queue)
        self._queues = {queue.slot: queue for queue in found.values()}
        self._top = [queue for queue in found.values() if queue.quota.parent not in found]
        self._in_order = list(self._top)
        for queue in self._in_order:
            self._in_order += queue.below
        self._named = frozenset(row for queue in found.values() for row in queue.fixed)
        self._any_guarantee = any(queue.low and not queue.quota.lend for queue in found.values())
        self.unshared = [tree.slots[q.name] for q in tree.quotas.values() if q.unshared]
        self._uncharged = {*self.unshared, tree.slots[OUTSIDE]}
        self.amounts.data[:] = 0

    def _takes_pods(self, queue: str) -> bool:
        """Do pods start in this queue? Not in a parent, nor while it or one above it is closed."""
        tree = self._state.tree
        return not (tree.quotas[queue].is_parent or tree.closed(queue))

    def _measure(self) -> None:
        """Work out the total to share: what the nodes have, less use outside the queues."""
        state, root = self._state, self._state.tree.slots[ROOT]
        self.total, self._guaranteed = {}, {}
        for row, name in enumerate(state.resources.names):
            if state.nodes.total.get(name, 0):
                used = sum(state.ledger.used.get(row, slot) for slot in self._uncharged)
                self.total[row] = max(state.capacity.lent(row) - used, 0)
                self._guaranteed[row] = max(state.capacity.guaranteed(row) - used, 0)
                self.amounts.data[row, root] = min(self.total[row], LIMIT)
        self.rows = frozenset(self.total) - state.resources.models.keys()

    def _share_row(self, row: int) -> None:
        """Share a resource: from the bottom up what queues want, from the top down their parts."""
        wants: dict[int, int] = {}
        for queue in reversed(self._in_order):
            self._want(row, queue, wants)
        total = self.total.get(row, 0)
        self._share_out(row, total, self._top, wants, self._guaranteed.get(row, total))
        for queue in self._in_order:
            if queue.below:
                self._share_out(row, self.amounts.get(row, queue.slot), queue.below, wants)

    def _want(self, row: int, queue: _Queue, wants: dict[int, int]) -> None:
        """A queue's request: its own pods', and that of the queues below up to their capability."""
        ledger, slot = self._state.ledger, queue.slot
        if row in self._state.resources.models and not self.names_model(row, slot):
            wants[slot] = sum(wants[each.slot] for each in queue.below)
            return
        own = ledger.used.get(row, slot) + ledger.held.get(row, slot) + ledger.wanted.get(row, slot)
        total = 0
        for each in queue.below:
            below = each.slot
            total += wants[below]
            own -= ledger.used.get(row, below) + ledger.held.get(row, below)
            own -= ledger.wanted.get(row, below)
        total += max(own - self._unsatisfiable.amounts.get(slot, {}).get(row, 0), 0)
        wants[slot] = min(total, queue.high.get(row, LIMIT))

    def _share_out(
        self, row: int, total: int, queues: list[_Queue], wants: dict[int, int], sure: int = 0
    ) -> None:
        """Share a total among sibling queues: first to fixed `deserved`, the rest by weight.

        Guarantees and fixed `deserved` are kept as far as `sure` goes, if that is more: nodes that
        are drained, or not ready for a moment, do not shrink them.
        """
        sure = max(total, sure)
        least = [
            min(low, wants[queue.slot]) if queue.quota.lend else low
            for queue in queues
            for low in (queue.low.get(row, 0),)
        ]
        guaranteed = floors(sure, least, [1] * len(least))
        fixed = [i for i, queue in enumerate(queues) if row in queue.fixed]
        shares = [_names(row, queue, self._named) for queue in queues]
        by_weight = [i for i, queue in enumerate(queues) if shares[i] and row not in queue.fixed]
        parts = [0 if each else low for each, low in zip(shares, guaranteed, strict=True)]
        kept = sure - sum(guaranteed[i] for i in by_weight)
        for these, most in ((fixed, kept), (by_weight, total)):
            several = [queues[i] for i in these]
            asked = [min(wants[q.slot], q.fixed.get(row, LIMIT)) for q in several]
            weights = [q.fixed.get(row) or _weight(row, q, self._state) for q in several]
            pool = most - sum(parts)
            levels = level(pool, asked, [guaranteed[i] for i in these], weights)
            for i, part in zip(these, levels, strict=True):
                parts[i] = part
        for queue, part in zip(queues, parts, strict=True):
            self.amounts.data[row, queue.slot] = min(part, LIMIT)


def _names(row: int, queue: _Queue, named: Set[int]) -> bool:
    """Does the queue deserve the resource by its `deserved`, or by weight?

    By weight it deserves what no `deserved` names, or all if it has no `deserved` of its own.
    """
    return row in queue.fixed or row not in named or not queue.fixed


def _weight(row: int, queue: _Queue, state: State) -> int:
    """The queue's weight; else its weight for the resource, its max, its min, or one unit."""
    if queue.quota.default_weight:
        return queue.quota.default_weight
    resource = state.resources.names[row]
    weights = dict(queue.quota.weight)
    return weights.get(resource) or queue.high.get(row) or queue.low.get(row) or per_one(resource)
