"""The runtime of every quota, kept in step with the state.

Feeds `sharing.runtime` from the tree and the ledger: which quotas share, in which resources, what
their pods request, and what there is to share. The system quota is outside the share trees: what it
uses is subtracted from the total. Trees with nodes of their own share these, each in the resources
that its quotas name; all other quotas are one tree, and share what those leave.
"""

from collections.abc import Callable

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT, QuotaTree, own_pods
from aliquot.engine.columns import Columns, Resources
from aliquot.engine.model.knobs import HierarchyKnobs
from aliquot.engine.model.quota import Quota
from aliquot.engine.policies import usage
from aliquot.engine.policies.demand import Demand, Unsatisfiable
from aliquot.engine.policies.shares import ShareBook, in_use
from aliquot.engine.sharing.runtime import RuntimeTree
from aliquot.engine.state import State


class Shares(ShareBook):
    """Runtime of every quota; `refresh` before reading."""

    def __init__(self, state: State, knobs: HierarchyKnobs) -> None:
        self._state = state
        self._knobs = knobs
        tree = state.tree
        self._tree = RuntimeTree(state.resources, tree.slots, tree.slots[ROOT])
        self._demand = Demand(state)
        self._requesting: dict[int, None] = {}
        self._uncharged: set[int] = set()
        """The unshared quotas, and the account of pods without a quota."""
        self._unsatisfiable = Unsatisfiable(state, self._takes_pods)
        self.own: dict[int, int] = {}
        """The implicit child for a parent's own pods, by the parent's slot."""
        self._parents: dict[int, int] = {}
        """The parent of each implicit child."""
        self.amounts = self._tree.runtime
        """The runtime of each quota."""
        self.scaled_min = self._tree.scaled_min
        self.request = self._tree.request
        self.sharing: dict[int, Quota] = {}
        """The quotas that share, by slot."""
        self.unshared: list[int] = []
        self.rows: frozenset[int] = frozenset()
        """The resources that are shared: those that any of these quotas names in min or max."""
        self._rows_by_root: dict[int, frozenset[int]] = {}
        """The same for each tree, by its root; empty where there is but one."""
        self._roots: dict[int, int] = {}
        """The root of each account that is in a tree with nodes of its own."""
        self.models: dict[int, set[int]] = {}
        """By model, the quotas that name it: only these have a share of its cards, which is no
        bound of theirs. What pods may start on is decided by max and by what is idle."""

    def refresh(self) -> list[int]:
        """Bring the runtimes up to date; the slots of quotas whose runtime has changed."""
        changed = self._demand.changed_quotas(self._uncharged)
        if changed is None:
            return []
        if self._demand.tree_changed():
            self._lay_out()
            changed.update(self._requesting)
        if self._unsatisfiable.refresh():
            changed.update(self._requesting)
        for slot in changed:
            if slot in self.sharing:
                self._ask(slot)
        if self._demand.totals_moved:
            self._measure()
        return self._tree.refresh()

    def rows_of(self, account: int) -> frozenset[int]:
        """The resources that are shared in the tree of an account."""
        if not self._rows_by_root:
            return self.rows
        return self._rows_by_root[self._root_of(account)]

    def root(self, quota: str) -> int:
        """The root of the tree that a quota is in."""
        return self._root_of(self._state.tree.slots[quota])

    def _root_of(self, account: int) -> int:
        return self._roots.get(account, self._state.tree.slots[ROOT])

    def in_use(self, row: int, root: int) -> int:
        """What all quotas of a tree together use or are nominated for."""
        state = self._state
        if root != state.tree.slots[ROOT]:
            return usage.taken(state, row, root)
        others = sum(usage.taken(state, row, each) for each in state.tree.tree_accounts.values())
        return in_use(state, self, row) - others

    def account(self, slot: int) -> int:
        """The slot whose runtime bounds a quota's own pods: its implicit child, or itself."""
        return self.own.get(slot, slot)

    def quota_of(self, account: int) -> int:
        """The quota that a slot belongs to: the parent of an implicit child, or itself."""
        return self._parents.get(account, account)

    def accounts(self, quota: str) -> tuple[int, ...]:
        """The slots whose runtime bounds a quota's pods: its own first, then its ancestors'."""
        lineage = self._state.tree.lineage(quota)
        own = self.own.get(lineage[0])
        return lineage if own is None else (own, *lineage)

    def part(self, columns: Columns, row: int, account: int) -> int:
        """An amount of a slot in the columns of the ledger."""
        return self._fold(lambda _, row, slot: columns.get(row, slot), row, account)

    def taken(self, row: int, account: int) -> int:
        """What is used or nominated in a slot."""
        if account not in self._parents:  # as for most: every gate reads this
            ledger = self._state.ledger
            cell = row * ledger.used.width + account
            found: int = ledger.used.cells[cell] + ledger.held.cells[cell]
            return found
        return self._fold(usage.taken, row, account)

    def after_leaving(self, row: int, account: int) -> int:
        """What is used or nominated in a slot once the leaving pods are gone."""
        return self._fold(usage.after_leaving, row, account)

    def staying(self, row: int, account: int) -> int:
        """What is used in a slot by pods that are not leaving."""
        return self._fold(usage.staying, row, account)

    def _fold(self, amount: Callable[[State, int, int], int], row: int, account: int) -> int:
        """An amount of a slot; an implicit child has the parent's less the other children's."""
        parent = self._parents.get(account)
        if parent is None:
            return amount(self._state, row, account)
        below = sum(amount(self._state, row, each) for each in self._tree.children(parent))
        return amount(self._state, row, parent) - below

    def unused_guarantees(self, row: int, lineage: tuple[int, ...]) -> int:
        """The unused min of quotas that do not lend, other than those of this lineage."""
        kept = 0
        root = self._root_of(lineage[0])
        for slot, quota in self.sharing.items():
            if not quota.lend and slot not in lineage and self._root_of(slot) == root:
                inside_another = any(
                    not self.sharing[above].lend
                    for above in self._state.tree.lineage(quota.name)[1:]
                    if above not in lineage
                )
                if not inside_another:
                    kept += max(self.scaled_min.get(row, slot) - self.taken(row, slot), 0)
        return kept

    def _lay_out(self) -> None:
        """Make the share trees agree with the quotas: set parents first, remove deleted last."""
        tree, resources = self._state.tree, self._state.resources
        sharing = [quota for quota in tree.quotas.values() if not quota.unshared]
        named = {name for quota in sharing for name, _ in (*quota.min, *quota.max)}
        rows = frozenset(resources.row(name) for name in sorted(named))
        self.rows = rows - resources.models.keys()
        self.models = {
            row: _naming(tree, resources, row, sharing) for row in sorted(resources.models)
        }
        self.unshared = [tree.slots[q.name] for q in tree.quotas.values() if q.unshared]
        self._uncharged = {*self.unshared, tree.slots[OUTSIDE]}
        before, self._requesting = self._requesting, {}
        self.own, self._parents, self.sharing = {}, {}, {}
        sharing.sort(key=lambda quota: len(tree.lineage(quota.name)))
        self._roots = self._root_accounts(sharing)
        for quota in sharing:
            lineage = tree.lineage(quota.name)
            slot, parent = (*lineage, self._root_of(lineage[0]))[:2]
            self._set(slot, parent, quota, quota.min)
            self.sharing[slot] = quota
            self._requesting[slot] = None
            if quota.is_parent and self._knobs.parent_pods == "implicitChild":
                own = self.own[slot] = tree.slots[own_pods(quota.name)]
                self._set(own, slot, quota, _left_over(quota, sharing))
                self._parents[own] = slot
                self._requesting[own] = None
        gone = [slot for slot in before if slot not in self._requesting]
        for slot in sorted(gone, key=self._tree.depth, reverse=True):
            self._tree.remove(slot)

    def _root_accounts(self, sharing: list[Quota]) -> dict[int, int]:
        """The root of each quota that is in a tree with nodes of its own, and of its own pods."""
        tree, row = self._state.tree, self._state.resources.row
        self._rows_by_root = {}
        if not tree.tree_accounts:
            return {}
        roots: dict[int, int] = {}
        named: dict[int, set[int]] = {tree.slots[ROOT]: set()}
        for root in tree.tree_accounts.values():
            self._tree.add_root(root)
            named[root] = set()
        for quota in sharing:
            slot, name = tree.slots[quota.name], tree.tree_of(quota.name)
            root = tree.tree_accounts[name] if name else tree.slots[ROOT]
            named[root].update(row(resource) for resource, _ in (*quota.min, *quota.max))
            if name:
                roots[slot] = root
                if quota.is_parent:
                    roots[tree.slots[own_pods(quota.name)]] = root
        models = self._state.resources.models.keys()
        self._rows_by_root = {root: frozenset(rows) - models for root, rows in named.items()}
        return roots

    def _set(self, slot: int, parent: int, quota: Quota, low: tuple[tuple[str, int], ...]) -> None:
        vector, scale = self._state.resources.vector, self._knobs.scale_min
        rows = range(len(self._state.resources))
        weight = (
            tuple((row, quota.default_weight) for row in rows)
            if quota.default_weight
            else vector(quota.weight)
        )
        bounds = (vector(low), vector(quota.max), weight)
        name = self._state.tree.slots.names[slot] or ""
        self._tree.set(slot, parent, name, *bounds, lend=quota.lend, scale=scale)

    def _ask(self, slot: int) -> None:
        """Feed the request of the quota's own pods to the share tree."""
        ledger, account = self._state.ledger, self.account(slot)
        below = self._tree.children(slot)
        unsatisfiable = self._unsatisfiable.amounts.get(slot, {})
        rows = self.rows_of(slot)
        for row in range(len(self._state.resources)):
            total = 0
            shared = row in rows or slot in self.models.get(row, ())
            for column in (ledger.used, ledger.held, ledger.wanted) if shared else ():
                total += column.get(row, slot) - sum(column.get(row, each) for each in below)
            if account != slot:
                self._tree.ask(slot, row, 0)
            self._tree.ask(account, row, max(total - unsatisfiable.get(row, 0), 0))

    def _takes_pods(self, quota: str) -> bool:
        """Do pods start in this quota? In a parent only where it has an implicit child."""
        is_parent = self._state.tree.quotas[quota].is_parent
        return not is_parent or self._knobs.parent_pods == "implicitChild"

    def _measure(self) -> None:
        """Feed the totals to the share trees: what the nodes have, less use outside the trees."""
        state, capacity = self._state, self._state.capacity
        accounts = state.tree.tree_accounts
        if accounts:
            state.tree_capacity.refresh()
        for row in range(len(state.resources)):
            used = sum(state.ledger.used.get(row, slot) for slot in self._uncharged)
            if not accounts:
                lent, guaranteed = capacity.lent(row), capacity.guaranteed(row)
            else:
                by_tree = state.tree_capacity.lent(row), state.tree_capacity.guaranteed(row)
                for name, root in accounts.items():
                    self._tree.total(row, by_tree[0][name], by_tree[1][name], root)
                lent, guaranteed = by_tree[0][""], by_tree[1][""]
            self._tree.total(row, lent - used, guaranteed - used)


def _naming(tree: QuotaTree, resources: Resources, row: int, quotas: list[Quota]) -> set[int]:
    """The slots of the quotas that name a model in min, max or weight."""
    name = resources.names[row]
    return {
        tree.slots[quota.name]
        for quota in quotas
        if any(name == each for each, _ in (*quota.min, *quota.max, *quota.weight))
    }


def _left_over(quota: Quota, quotas: list[Quota]) -> tuple[tuple[str, int], ...]:
    """The min of a parent's implicit child: the parent's less its children's."""
    children_min: dict[str, int] = {}
    for child in quotas:
        if child.parent == quota.name:
            for name, amount in child.min:
                children_min[name] = children_min.get(name, 0) + amount
    return tuple((name, max(low - children_min.get(name, 0), 0)) for name, low in quota.min)
