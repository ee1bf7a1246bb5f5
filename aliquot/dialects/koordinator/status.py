"""What Koordinator writes into a quota for its users to read: annotations, each a JSON map.

The figures are the engine's. Worked out here is only what no policy decides by: what is asked for
before a quota that does not lend raises it to its min, and the part of pods that are not to be
evicted.
"""

import json
from collections.abc import Container, Mapping

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX
from aliquot.engine.books.ledger import Entry, Stage
from aliquot.engine.report.summary import Figures, QuotaSummary
from aliquot.engine.state import State

_WORDS = (
    *("runtime", "request", "child-request"),
    *("non-preemptible-request", "non-preemptible-used"),
)
FIGURES = frozenset(f"{KOORDINATOR_PREFIX}{word}" for word in _WORDS)
"""The annotations that are written here, and that nobody reads but people."""

Summaries = Mapping[str, QuotaSummary]


def status_annotations(state: State, summaries: Summaries) -> dict[str, dict[str, str]]:
    """What is written into each quota; resources that it does not name are left out."""
    child_requests = _child_requests(state, summaries)
    asked, used = _not_preemptible(state)
    return {
        name: _annotations(
            {
                "runtime": summary.runtime,
                "request": summary.request,
                "child-request": child_requests[name],
                "non-preemptible-request": asked.get(name, {}),
                "non-preemptible-used": used.get(name, {}),
            },
            {*summary.min, *summary.max},
        )
        for name, summary in summaries.items()
    }


def _annotations(figures: Mapping[str, Figures], named: Container[str]) -> dict[str, str]:
    return {
        f"{KOORDINATOR_PREFIX}{key}": _json(each, named or each) for key, each in figures.items()
    }


def _json(figures: Figures, named: Container[str]) -> str:
    shown = {name: amount for name, amount in figures.items() if name in named}
    return json.dumps(amounts.write(shown), separators=(",", ":"))


def _child_requests(state: State, summaries: Summaries) -> dict[str, Figures]:
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


def _not_preemptible(state: State) -> tuple[dict[str, Figures], dict[str, Figures]]:
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
