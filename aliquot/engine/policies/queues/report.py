"""The figures of queues and of the namespaces in them."""

from collections.abc import Iterable
from dataclasses import replace

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.summaries import NamespaceFigures, QueueSummary, QuotaSummary
from aliquot.engine.policies.interface import Report
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.state import State


class QueueReport(Report):
    """What each queue deserves, and what the namespaces in it use."""

    def __init__(self, state: State, shares: CurrentShares[Deserved], drf: DominantShares) -> None:
        self._state = state
        self._shares = shares
        self._drf = drf

    def refresh(self) -> None:
        """Bring the shares up to date."""
        self._shares.refresh_for_question()
        self._drf.refresh()

    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """The runtime of a queue is what it deserves."""
        deserved, names = self._shares.book, self._state.resources.names
        completed = []
        for each in summaries:
            slot = self._state.tree.slots[each.name]
            shown = {*each.used, *each.min, *each.max}
            rows = {names[row]: row for row in sorted(deserved.rows) if names[row] in shown}
            models = () if slot in deserved.unshared else sorted(self._state.resources.models)
            rows |= {names[row]: row for row in models if deserved.names_model(row, slot)}
            runtime = {name: deserved.get(row, slot) for name, row in rows.items()}
            completed.append(replace(each, runtime=runtime))
        return completed

    def queues(self, quotas: Iterable[QuotaSummary]) -> list[QueueSummary]:
        """The figures of every queue, and of the namespaces in it."""
        names, used = self._state.resources.names, self._in_use()
        found = []
        for summary in self.complete(list(quotas)):
            inside = {
                namespace: NamespaceFigures(
                    self._drf.weight(namespace),
                    self._drf.share(sums),
                    {
                        names[row]: n
                        for row, n in sorted(sums.items())
                        if names[row] in summary.used
                    },
                )
                for namespace, sums in sorted(used.get(summary.name, {}).items())
            }
            weight = self._state.tree.quotas[summary.name].default_weight or 1
            found.append(QueueSummary(summary.name, weight, summary.runtime, summary.used, inside))
        return found

    def _in_use(self) -> dict[str | None, dict[str, dict[int, int]]]:
        """What the pods of each namespace use in each queue, without nominations.

        A namespace whose pods all wait is listed with zeros.
        """
        found: dict[str | None, dict[str, dict[int, int]]] = {}
        for uid, pod in self._state.pods.items():
            entry = self._state.ledger.entries[uid]
            sums = found.setdefault(entry.booking.quota, {}).setdefault(pod.namespace, {})
            for row, amount in entry.booking.charge:
                sums[row] = sums.get(row, 0) + (amount if entry.stage >= Stage.ASSUMED else 0)
        return found
