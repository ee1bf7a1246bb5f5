"""The figures of every quota: the numbers that tables, JSON, metrics and explanations show."""

from collections.abc import Iterator

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import units
from aliquot.engine.model.pod import GPU_MEMORY
from aliquot.engine.model.quantity import Amounts, per_one
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.summaries import Figures, QuotaSummary
from aliquot.engine.policies.over_quota import over_quota
from aliquot.engine.state import State

_ONLY_WHERE_NAMED = ("pods", GPU_MEMORY)
"""Resources that are shown only for quotas that name them: most do not, and every pod has some."""


def summarise(state: State) -> Iterator[QuotaSummary]:
    """All quotas, by name, without the figures of the policy (see `Engine.summarise`).

    Computed one by one as they are read: a policy without queues reads none for `Policy.queues`.
    """
    quotas = sorted(state.tree.quotas.values(), key=lambda quota: quota.name)
    return (_figures(state, quota) for quota in quotas)


def over_quota_pods(state: State) -> set[str]:
    """The uids of all bound pods that are over-quota."""
    ledger, names = state.ledger, state.resources.names
    over: set[str] = set()
    for quota in state.tree.quotas.values():
        charges: dict[str, Amounts] = {}
        for uid in ledger.by_quota.get(quota.name, ()):
            entry = ledger.entries[uid]
            if entry.stage >= Stage.ASSUMED:
                charge = tuple((names[row], amount) for row, amount in entry.booking.charge)
                charges[uid] = charge
        pods = [state.pods[uid] for uid in charges]
        pods.sort(key=lambda pod: state.running.key_for(pod, ledger.entries[pod.uid]))
        ranked = units(pods, state.gangs.of)
        counted = [[(pod, charges[pod.uid]) for pod in unit.pods] for unit in ranked]
        over |= over_quota(counted, _floor(state, quota))
    return over


def _floor(state: State, quota: Quota) -> Figures:
    """The quota's min in every resource that any min names, 0 where its own does not."""
    own = dict(quota.min)
    managed = (name for name in state.resources.names if _is_managed(state, name))
    return {name: own.get(name, 0) for name in managed}


def _is_managed(state: State, resource: str) -> bool:
    return state.tree.guaranteed(state.resources.row(resource)) is not None


def _figures(state: State, quota: Quota) -> QuotaSummary:
    low, high, weight = dict(quota.min), dict(quota.max), dict(quota.weight)
    used, request = _in_use(state, quota)
    floor = {name: low.get(name, 0) for name in used if _is_managed(state, name)}
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
    """Used and request, in the resources that the quota names or its pods ask for.

    `pods` and GPU memory are resources like any other, but shown only where the quota names them.
    """
    slot, ledger = state.tree.slots[quota.name], state.ledger
    named = {name for name, _ in (*quota.min, *quota.max)}
    used: Figures = {}
    request: Figures = {}
    for row, name in enumerate(state.resources.names):
        in_use = ledger.used.get(row, slot)
        asked = in_use + ledger.held.get(row, slot) + ledger.wanted.get(row, slot)
        if name in named or (asked and name not in _ONLY_WHERE_NAMED):
            used[name], request[name] = in_use, asked
    return used, request
