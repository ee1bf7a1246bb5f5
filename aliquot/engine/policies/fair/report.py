"""The figures of quotas that share idle min: runtime, and the guaranteed share of the idle min."""

from dataclasses import replace

from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.capacity.report import SharedMinReport
from aliquot.engine.policies.fair.guaranteed import GuaranteedShares


class FairReport(SharedMinReport):
    """The runtime of each quota, and its guaranteed share of the idle min."""

    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in the figures of each quota."""
        state = self._state
        parts = {
            state.resources.names[row]: GuaranteedShares(state, row)
            for row in state.tree.guaranteed_rows()
        }
        return [
            replace(
                each,
                guaranteed={
                    name: parts[name].guaranteed(each.name) for name in each.used if name in parts
                },
            )
            for each in super().complete(summaries)
        ]
