"""The figures of every quota: the numbers that tables, JSON, metrics and explanations show."""

from collections.abc import Iterator

import numpy as np

from aliquot.engine.model.pod import GPU_MEMORY
from aliquot.engine.model.quantity import per_one
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.summaries import Figures, QuotaSummary
from aliquot.engine.state import State

_ONLY_WHERE_NAMED = ("pods", GPU_MEMORY)
"""Resources that are shown only for quotas that name them: most quotas do not, and every pod counts
in them."""


def summarise(state: State) -> Iterator[QuotaSummary]:
    """All quotas, by name, without the figures of the policy (see `Engine.summarise`).

    Computed one by one as they are read: a policy without queues reads none for `Report.queues`.
    """
    quotas = sorted(state.tree.quotas.values(), key=lambda quota: quota.name)
    return (_figures(state, quota) for quota in quotas)


def _figures(state: State, quota: Quota) -> QuotaSummary:
    low, high, weight = dict(quota.min), dict(quota.max), dict(quota.weight)
    used, request = _in_use(state, quota)
    guaranteed, row = state.tree.guaranteed, state.resources.row
    floor = {name: low.get(name, 0) for name in used if guaranteed(row(name)) is not None}
    return QuotaSummary(
        name=quota.name,
        parent=quota.parent,
        min=low,
        max=high,
        used=used,
        request=request,
        runtime={},
        weight={
            name: weight.get(name, high.get(name, low.get(name, per_one(name)))) for name in used
        },
        borrowed={name: max(used[name] - floor[name], 0) for name in floor},
        idle={name: max(low[name] - used[name], 0) for name in low},
    )


def _in_use(state: State, quota: Quota) -> tuple[Figures, Figures]:
    """Used and request, in the resources that the quota names or its pods request."""
    slot, ledger = state.tree.slots[quota.name], state.ledger
    named = {name for name, _ in (*quota.min, *quota.max)}
    used: Figures = {}
    request: Figures = {}
    amounts = (each.data[:, slot] for each in (ledger.used, ledger.held, ledger.wanted))
    rows = set(np.flatnonzero(np.logical_or.reduce([each != 0 for each in amounts])).tolist())
    rows |= {state.resources.row(name) for name in named}
    for row in sorted(rows):
        in_use, name = ledger.used.get(row, slot), state.resources.names[row]
        asked = in_use + ledger.held.get(row, slot) + ledger.wanted.get(row, slot)
        if name in named or (asked and name not in _ONLY_WHERE_NAMED):
            used[name], request[name] = in_use, asked
    return used, request
