"""Figures of a quota tree that no policy decides by, for readers of Koordinator's annotations.

The request of a quota before `lend: false` raises it to its min, and the part of its request and
its use that belongs to non-preemptible pods.
"""

from collections.abc import Mapping

from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.model.summaries import Figures, QuotaSummary
from aliquot.engine.state import State

Summaries = Mapping[str, QuotaSummary]


def child_requests(state: State, summaries: Summaries) -> dict[str, Figures]:
    """The request of each quota's own pods, plus its children's up to their max."""
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


def guarantees(summaries: Summaries) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """What each quota is sure of with what was given to it, and what of that is given away.

    Given away is what its own pods use, and what its children are sure of; it is sure of that, and
    of its min at least.
    """
    children: dict[str | None, list[str]] = {}
    for name, summary in summaries.items():
        children.setdefault(summary.parent, []).append(name)
    sure: dict[str, Figures] = {}
    given: dict[str, Figures] = {}
    for name in _children_first(children):
        summary, below = summaries[name], children.get(name, ())
        given[name] = dict(summary.used)
        for child in below:
            _add(given[name], {key: -amount for key, amount in summaries[child].used.items()})
            _add(given[name], sure[child])
        sure[name] = {
            key: max(given[name].get(key, 0), summary.min.get(key, 0))
            for key in {**given[name], **summary.min}
        }
    return sure, given


def _children_first(children: Mapping[str | None, list[str]]) -> list[str]:
    """All quotas, each after those below it."""
    found, level = list[str](), children.get(None, [])
    while level:
        found += level
        level = [child for name in level for child in children.get(name, ())]
    return found[::-1]


def not_preemptible(state: State) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """What non-preemptible pods request, and use, by quota; a parent has its children's sum."""
    asked: dict[str, Figures] = {}
    used: dict[str, Figures] = {}
    for uid in state.not_preemptible:
        entry = state.ledger.entries[uid]
        home = entry.booking.quota
        if home is None:
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
