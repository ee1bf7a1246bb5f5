"""The figures of every quota: the numbers that tables, JSON, metrics and explanations show."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from aliquot.engine.books.gangs import units
from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gpu import GpuAmount
from aliquot.engine.model.importance import over_quota
from aliquot.engine.model.objects import GPU_MEMORY, Amounts, Quota
from aliquot.engine.model.quantity import per_one
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.sharing.waterfill import Sharer, share
from aliquot.engine.state import State

Figures = dict[str, int]
"""Amounts by resource name."""

_ONLY_WHERE_NAMED = ("pods", GPU_MEMORY)
"""Resources that are shown only for quotas that name them: most quotas do not, and every pod counts
in them."""


@dataclass(frozen=True, slots=True)
class QuotaSummary:
    """One quota's figures. A resource without a bound is missing from `max`.

    `runtime` and `guaranteed` are filled in by the policy; the latter under `fair` only.
    """

    name: str
    parent: str | None
    min: Figures
    max: Figures
    used: Figures
    request: Figures
    runtime: Figures
    weight: Figures
    borrowed: Figures
    idle: Figures
    guaranteed: Figures | None = None
    scaled_min: Figures | None = None
    """The min in force, where it is scaled down because the cluster has less than all mins."""


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """A namespace in a queue: its weight, and its dominant share of the cluster by what it uses."""

    weight: int
    share: Fraction
    used: Figures


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """One queue's figures: what it deserves now, and what each namespace uses of it."""

    name: str
    weight: int
    deserved: Figures
    used: Figures
    namespaces: dict[str, NamespaceFigures]


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition: its type, whether it is true, and why."""

    type: str
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GpuQuotaSummary:
    """The figures and conditions of a GPU quota.

    `available_percent` by `requests.tflops`, `requests.vram`, `limits.tflops`, `limits.vram` and
    `workers`; None where there is no bound.
    """

    namespace: str
    name: str
    requests: GpuAmount
    limits: GpuAmount
    workers: int
    available_percent: dict[str, Fraction | None]
    conditions: list[Condition]


@dataclass(frozen=True, slots=True)
class GangSummary:
    """A gang's phase, how many of its pods run, and why it waits, if it does."""

    name: str
    phase: Literal["Pending", "Inqueue", "Running", "Unknown", "Completed"]
    min_member: int
    running: int
    refusal: Refusal | None = None


def summarise(state: State) -> list[QuotaSummary]:
    """All quotas, by name, without the figures of the policy (see `Engine.summarise`)."""
    quotas = sorted(state.tree.quotas.values(), key=lambda quota: quota.name)
    return [_figures(state, quota) for quota in quotas]


def share_guarantees(state: State, summaries: list[QuotaSummary]) -> None:
    """Fill in the runtime of quotas that borrow from each other: their shares of the sum of min."""
    by_name = {summary.name: summary for summary in summaries}
    for resource in state.resources.names:
        total = state.tree.guaranteed(state.resources.row(resource))
        sharers = [_sharer(by_name[quota.name], resource) for quota in state.tree.leaves()]
        for name, part in share(total or 0, sharers).items():
            if total is not None and resource in by_name[name].used:
                by_name[name].runtime[resource] = part


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
        pods.sort(key=lambda pod: state.running.place(pod, ledger.entries[pod.uid]))
        ranked = units(pods, state.gangs.of)
        counted = [[(pod, charges[pod.uid]) for pod in unit.pods] for unit in ranked]
        over |= over_quota(counted, _floor(state, quota))
    return over


def _floor(state: State, quota: Quota) -> Figures:
    """The quota's min in every resource that any quota's min names, 0 where its own does not."""
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
    """Used and request, in the resources that the quota names or its pods request."""
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


def _sharer(summary: QuotaSummary, resource: str) -> Sharer:
    request = summary.request.get(resource, 0)
    return Sharer(
        name=summary.name,
        wants=min(request, summary.max.get(resource, request)),
        floor=summary.min.get(resource, 0),
        weight=summary.weight.get(resource, 1),
    )
