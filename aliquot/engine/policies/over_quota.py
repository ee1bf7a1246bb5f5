"""Which pods of a quota are over its min, and what its in-quota pods hold (its floor).

Victims and labels both come from here, so that what users see is what is evicted.

The quota's pods are added up in order of importance, those that are not preemptible first. Those
before the sum first passes min are in-quota; that pod and all after it are over-quota. The core of
a gang is one or the other as a whole. A split is kept until a pod of the quota comes or goes, or
its min changes.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.state import State

Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MinSplit:
    """A quota's pods, parted where their sum passes min, counted in some of the resources."""

    ranked: NDArray[np.int64]
    low: tuple[int, ...]
    overdue: tuple[int, ...]
    """What overdue victims hold: the sum begins with that."""
    floor: Counter[int]
    """What the in-quota pods hold."""
    over: NDArray[np.int64]
    """The over-quota pods, by their slot among the bound ones."""
    total: Counter[int]
    """What all of them hold; assumed pods cannot be evicted yet, and do not count."""


def split_at_min(state: State, slot: int, rows: Rows) -> MinSplit:
    """The split of a quota's pods, counted in these resources."""
    return split_at(state, slot, rows, tuple(state.tree.min.get(row, slot) for row in rows))


def split_at(state: State, slot: int, rows: Rows, low: tuple[int, ...]) -> MinSplit:
    """The same, parted where their sum passes these amounts."""
    held_overdue = _overdue(state, slot)
    overdue = tuple(held_overdue.get(row, 0) for row in rows)
    ranked = state.bound_pods.ranked_slots(slot)
    kept = state.min_splits.get((slot, rows))
    start = (low, overdue)
    if isinstance(kept, MinSplit) and kept.ranked is ranked and (kept.low, kept.overdue) == start:
        return kept
    state.min_splits[slot, rows] = split = _split(state, slot, ranked, rows, low, overdue)
    return split


def _overdue(state: State, slot: int) -> dict[int, int]:
    """What the quota's overdue victims hold, by row.

    They cannot be evicted again, so they use up min before the other pods do.
    """
    held: dict[int, int] = {}
    for uid in state.leaving.overdue:
        entry = state.ledger.entries[uid]
        if entry.path[0] == slot:
            for row, amount in entry.booking.charge:
                held[row] = held.get(row, 0) + amount
    return held


def _split(
    state: State,
    slot: int,
    ranked: NDArray[np.int64],
    rows: Rows,
    low: tuple[int, ...],
    overdue: tuple[int, ...],
) -> MinSplit:
    """Work the split out anew.

    Of resources that its pods do not use, there is nothing to add up.
    """
    used = state.ledger.used
    bounds = zip(rows, low, overdue, strict=True)
    counted = [each for each in bounds if each[2] or used.get(each[0], slot)]
    charge = state.bound_pods.charge.data
    sums = [_sums(charge[row].take(ranked), begin) for row, _, begin in counted]
    passed = [total > bound for total, (_, bound, _) in zip(sums, counted, strict=True)]
    first = min((int(each.argmax()) for each in passed if each.any()), default=len(ranked))
    first = state.bound_pods.unit_start(slot, first)
    floor, total = Counter[int](), Counter[int]()
    for sum_so_far, (row, _, begin) in zip(sums, counted, strict=True):
        floor[row] = int(sum_so_far[first - 1]) if first else begin
        total[row] = int(sum_so_far[-1]) if len(sum_so_far) else begin
    return MinSplit(ranked, low, overdue, floor, ranked[first:], total)


def _sums(amounts: NDArray[np.int64], begin: int) -> NDArray[Any]:
    """The sums so far; in Python's own integers where they may be too large for an int64."""
    exact = amounts.sum(dtype=np.float64) + begin < LIMIT
    return np.cumsum(amounts if exact else amounts.astype(object)) + begin


def over_quota_pods(state: State) -> set[str]:
    """The bound pods that are over their quota's min, in any resource that a quota's min names.

    A leaving pod counts as gone for victims, and so is over-quota as long as it is there.
    """
    rows, names = state.tree.guaranteed_rows(), state.bound_pods.slots.names
    over = {
        str(names[bound])
        for quota in state.tree.quotas
        for bound in split_at_min(state, state.tree.slots[quota], rows).over
    }
    leaving = (uid for uid in state.leaving if state.ledger.entries[uid].booking.quota is not None)
    return over.union(leaving)
