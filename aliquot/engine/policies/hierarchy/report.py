"""The figures of quota trees: runtime, the min in force, and the request of parents."""

from dataclasses import replace

from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.interface import Report
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.state import State


class HierarchyReport(Report):
    """Runtime, the scaled min where it is less than min, and the request of parents."""

    def __init__(self, state: State, shares: CurrentShares[Shares]) -> None:
        self._state = state
        self._shares = shares

    def refresh(self) -> None:
        """Bring the shares up to date."""
        self._shares.refresh_for_question()

    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in the figures of each quota."""
        return [self._complete(each) for each in summaries]

    def _complete(self, summary: QuotaSummary) -> QuotaSummary:
        state, shares, names = self._state, self._shares.book, self._state.resources.names
        slot = state.tree.slots[summary.name]
        named = {*summary.min, *summary.max} or {names[row] for row in shares.rows}
        counted = shares.rows if slot in shares.sharing else ()
        rows = {names[row]: row for row in sorted(counted) if names[row] in named}
        low = {name: shares.scaled_min.get(row, slot) for name, row in rows.items()}
        request = summary.request
        if state.tree.quotas[summary.name].is_parent:
            asked_for = {name: shares.request.get(row, slot) for name, row in rows.items()}
            request = request | asked_for
        scaled = {name: low[name] for name, n in summary.min.items() if low.get(name, n) < n}
        return replace(
            summary,
            runtime={name: shares.amounts.get(row, slot) for name, row in rows.items()},
            request=request,
            scaled_min=scaled or None,
        )
