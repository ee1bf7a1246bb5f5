"""The figures of quotas that borrow from each other: their shares of the sum of min."""

from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.interface import Report
from aliquot.engine.sharing.waterfill import Sharer, share
from aliquot.engine.state import State


class SharedMinReport(Report):
    """The runtime of each quota: its share of the sum of min, by water-filling over request."""

    def __init__(self, state: State) -> None:
        self._state = state

    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in the runtime of each quota."""
        state, by_name = self._state, {summary.name: summary for summary in summaries}
        sharers: dict[str, list[Sharer]] = {name: [] for name in state.resources.names}
        for quota in state.tree.leaves():
            for resource in by_name[quota.name].used:
                sharers[resource].append(_sharer(by_name[quota.name], resource))
        for resource, some in sharers.items():
            total = state.tree.guaranteed(state.resources.row(resource))
            if total is not None:
                for name, part in share(total, some).items():
                    by_name[name].runtime[resource] = part
        return summaries


def _sharer(summary: QuotaSummary, resource: str) -> Sharer:
    request = summary.request.get(resource, 0)
    return Sharer(
        name=summary.name,
        wants=min(request, summary.max.get(resource, request)),
        floor=summary.min.get(resource, 0),
        weight=summary.weight.get(resource, 1),
    )
