"""The figures of quota trees: runtime, the min in force, and the request that shares go by."""

from dataclasses import replace

from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.interface import Report
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.sharing.waterfill import floors
from aliquot.engine.state import State


class HierarchyReport(Report):
    """Runtime, the scaled min where it is less than min, and the request.

    As Koordinator counts it: that of a parent is the sum of its children's, each up to its max;
    that of a quota that does not lend is at least its min.
    """

    def __init__(self, state: State, shares: CurrentShares[Shares]) -> None:
        self._state = state
        self._shares = shares

    def refresh(self) -> None:
        """Bring the shares up to date."""
        self._shares.refresh_for_question()

    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in the figures of each quota."""
        scaled = _ScaledMins(self._state, self._shares.book)
        return [self._complete(each, scaled) for each in summaries]

    def _complete(self, summary: QuotaSummary, scaled: "_ScaledMins") -> QuotaSummary:
        state, shares, names = self._state, self._shares.book, self._state.resources.names
        slot = state.tree.slots[summary.name]
        named = {*summary.min, *summary.max} or {names[row] for row in shares.rows_of(slot)}
        counted = shares.rows_of(slot) if slot in shares.sharing else ()
        rows = {names[row]: row for row in sorted(counted) if names[row] in named}
        rows |= {names[row]: row for row, naming in shares.models.items() if slot in naming}
        request = summary.request
        if state.tree.quotas[summary.name].is_parent:
            asked_for = {name: shares.request.get(row, slot) for name, row in rows.items()}
            request = request | asked_for
        elif rows and not state.tree.quotas[summary.name].lend:
            least = {name: max(n, request.get(name, 0)) for name, n in summary.min.items()}
            request = request | least
        low = {name: scaled.get(row, slot) for name, row in rows.items()}
        shown = {name: low[name] for name, n in summary.min.items() if low.get(name, n) < n}
        return replace(
            summary,
            runtime={name: shares.amounts.get(row, slot) for name, row in rows.items()},
            request=request,
            scaled_min=shown or None,
        )


class _ScaledMins:
    """The min of each quota that it could count on if it asked for all of it.

    The share tree scales the mins of siblings to their parent's runtime, which in an idle tree is
    small because they ask for nothing. Here a parent has at least its own min, scaled or not: what
    is less than min then is scaled because the cluster, or the parent's min, is too small.
    """

    def __init__(self, state: State, shares: Shares) -> None:
        self._tree = state.tree
        self._shares = shares
        self._families: dict[tuple[int, int], dict[int, int]] = {}
        """The mins of the children of a quota in a resource, by slot."""
        self._children: dict[str | None, list[int]] = {}
        for slot, quota in shares.sharing.items():
            self._children.setdefault(quota.parent, []).append(slot)

    def get(self, row: int, slot: int) -> int:
        """The min of a quota in a resource; its ancestors are looked at from the top down."""
        name = str(self._tree.slots.names[slot])
        for parent in reversed(self._tree.lineage(name)[1:]):
            if (parent, row) not in self._families:
                self._families[parent, row] = self._family(row, parent)
        return self._known(row, slot)

    def _known(self, row: int, slot: int) -> int:
        """The min of a quota whose ancestors are known."""
        quota = self._shares.sharing[slot]
        if quota.parent is None:
            return self._shares.scaled_min.get(row, slot)
        return self._families[self._tree.slots[quota.parent], row][slot]

    def _family(self, row: int, parent: int) -> dict[int, int]:
        shares, tree = self._shares, self._tree
        slots = self._children[tree.slots.names[parent]]
        mins = [tree.min.get(row, slot) for slot in slots]
        if all(
            shares.scaled_min.get(row, slot) >= low for slot, low in zip(slots, mins, strict=True)
        ):
            return dict(zip(slots, mins, strict=True))
        own = max(tree.min.get(row, parent) - sum(mins), 0) if parent in shares.own else 0
        total = max(shares.amounts.get(row, parent), self._known(row, parent))
        return dict(zip(slots, floors(total, [*mins, own], [1] * (len(mins) + 1)), strict=False))
