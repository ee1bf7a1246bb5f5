"""The figures of every quota: the numbers that tables, JSON, metrics and explanations show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

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

    Computed as they are read: a policy without queues reads none for `Report.queues`.
    """
    quotas = sorted(state.tree.quotas.values(), key=lambda quota: quota.name)
    floored = {
        name: state.tree.guaranteed(row) is not None
        for row, name in enumerate(state.resources.names)
    }
    for quota, rows in zip(quotas, _rows_in_use(state, quotas), strict=True):
        yield _figures(state, quota, rows, floored)


def _rows_in_use(state: State, quotas: Sequence[Quota]) -> Iterator[list[int]]:
    """The resources that each quota's pods use or ask for; found for all quotas at once."""
    ledger = state.ledger
    slots = [state.tree.slots[quota.name] for quota in quotas]
    amounts = (each.data[:, slots] for each in (ledger.used, ledger.held, ledger.wanted))
    places, rows = np.nonzero(np.logical_or.reduce([each != 0 for each in amounts]).T)
    ends = np.searchsorted(places, np.arange(len(slots) + 1)).tolist()
    found = rows.tolist()
    return (found[begin:end] for begin, end in pairwise(ends))


def _figures(
    state: State, quota: Quota, rows: Iterable[int], floored: Mapping[str, bool]
) -> QuotaSummary:
    low, high, weight = dict(quota.min), dict(quota.max), dict(quota.weight)
    used, request = _in_use(state, quota, rows)
    models = {name for name in used if _is_model(state, name)}
    floor = {
        name: low.get(name, 0) for name in used if floored[name] or name in models & low.keys()
    }
    return QuotaSummary(
        name=quota.name,
        parent=quota.parent,
        min=low,
        max=high,
        used=used,
        request=request,
        runtime={},
        weight={
            name: weight.get(name, high.get(name, low.get(name, per_one(name))))
            for name in used
            if name in weight or name in high or name in low or name not in models
        },
        borrowed={name: max(used[name] - floor[name], 0) for name in floor},
        idle={name: max(low[name] - used[name], 0) for name in low},
        tree=state.tree.tree_of(quota.name) or None,
    )


def _is_model(state: State, name: str) -> bool:
    """Are these cards of one model? A quota that names none has no share by model."""
    return state.resources.row(name) in state.resources.models


def _in_use(state: State, quota: Quota, rows: Iterable[int]) -> tuple[Figures, Figures]:
    """Used and request, in the resources that the quota names or its pods request."""
    slot, ledger, names = state.tree.slots[quota.name], state.ledger, state.resources.names
    named = {name for name, _ in (*quota.min, *quota.max)}
    used: Figures = {}
    request: Figures = {}
    for row in sorted({*rows, *map(state.resources.row, named)}):
        in_use, name = ledger.used.get(row, slot), names[row]
        asked = in_use + ledger.held.get(row, slot) + ledger.wanted.get(row, slot)
        if name in named or (asked and name not in _ONLY_WHERE_NAMED):
            used[name], request[name] = in_use, asked
    return used, request
