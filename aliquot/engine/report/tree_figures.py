"""Figures of a quota tree that no policy decides by, and that Koordinator's users read.

What is asked for in a quota before one that does not lend raises it to its min, and the part of
pods that are not to be evicted.
"""

from collections.abc import Mapping

from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.model.summaries import Figures, QuotaSummary
from aliquot.engine.state import State

Summaries = Mapping[str, QuotaSummary]


def child_requests(state: State, summaries: Summaries) -> dict[str, Figures]:
    """What its pods ask for, and its children as far as their max lets them, of each quota."""
    totals: dict[str, Figures] = {}
    for name, summary in summaries.items():
        if state.tree.quotas[name].lend:
            totals[name] = summary.request
            continue
        totals[name] = dict.fromkeys(summary.request, 0)
        for uid in state.ledger.by_quota.get(name, ()):
            _add(totals[name], _charge(state, state.ledger.entries[uid]))
    for child in summaries.values():
        if child.parent is not None and not state.tree.quotas[child.parent].lend:
            asked = child.request.items()
            limited = {key: min(value, child.max.get(key, value)) for key, value in asked}
            _add(totals[child.parent], limited)
    return totals


def not_preemptible(state: State) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """What pods that are not to be evicted ask for, and hold, by quota; parents have the sum."""
    asked: dict[str, Figures] = {}
    used: dict[str, Figures] = {}
    for uid, pod in state.pods.items():
        entry = state.ledger.entries[uid]
        home = entry.booking.quota
        if pod.preemptible or home is None:
            continue
        charge = _charge(state, entry)
        for quota in state.tree.ancestry(home):
            _add(asked.setdefault(quota.name, {}), charge)
            if entry.stage >= Stage.ASSUMED:
                _add(used.setdefault(quota.name, {}), charge)
    return asked, used


def _charge(state: State, entry: Entry) -> Figures:
    return {state.resources.names[row]: amount for row, amount in entry.booking.charge}


def _add(total: Figures, more: Mapping[str, int]) -> None:
    for key, value in more.items():
        total[key] = total.get(key, 0) + value
