"""The split_at_min over a quota's pods, the most important first, until their sum passes min.

Those before that point are in-quota, and what they hold is the quota's floor; that pod and all
after it are over-quota. The core of a gang is one or the other as a whole. Walks are kept until a
pod of the quota comes or goes, or its min changes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.state import State

Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MinSplit:
    """Where a quota's pods stand, counted in some of the resources."""

    ranked: list[str]
    low: tuple[int, ...]
    staying_pods: tuple[int, ...]
    """What those hold who were asked to go and do not: the split_at_min begins with that."""
    floor: dict[int, int]
    """What the pods before that point hold: the in-quota ones."""
    over: NDArray[np.int64]
    """The pods from there on, by their slot among the bound ones."""
    total: dict[int, int]
    """What all of them hold. Pods that are not confirmed yet cannot be asked, and do not count."""


def managed_rows(state: State) -> Rows:
    """The resources that somebody guarantees."""
    rows = range(len(state.resources))
    return tuple(row for row in rows if state.tree.guaranteed(row) is not None)


def split_at_min(state: State, slot: int, rows: Rows) -> MinSplit:
    """The split_at_min over the pods of a quota, in these resources."""
    low = tuple(state.tree.min.get(row, slot) for row in rows)
    held = _staying(state, slot)
    staying_pods = tuple(held.get(row, 0) for row in rows)
    ranked = state.running.ranked(slot)
    kept = state.min_splits.get((slot, rows))
    begun = (low, staying_pods)
    if (
        isinstance(kept, MinSplit)
        and kept.ranked is ranked
        and (kept.low, kept.staying_pods) == begun
    ):
        return kept
    state.min_splits[slot, rows] = fresh = _split(state, slot, ranked, rows, low, staying_pods)
    return fresh


def _staying(state: State, slot: int) -> dict[int, int]:
    """What pods of a quota hold that were asked to go and do not: it has that of its min already.

    They are not among those who can be asked, and must not keep the others from it.
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
    ranked: list[str],
    rows: Rows,
    low: tuple[int, ...],
    staying_pods: tuple[int, ...],
) -> MinSplit:
    """Add up in Python's own integers: no sum of amounts is too large for them."""
    slots = np.array([state.running.slots[uid] for uid in ranked], dtype=np.int64)
    sums = [
        np.cumsum(state.running.charge.data[row][slots].astype(object)) + begin
        for row, begin in zip(rows, staying_pods, strict=True)
    ]
    passed = [total > bound for total, bound in zip(sums, low, strict=True)]
    first = min((int(each.argmax()) for each in passed if each.any()), default=len(ranked))
    first = state.running.unit_start(slot, first)
    begun = zip(rows, sums, staying_pods, strict=True)
    floor, total = {}, {}
    for row, sum_so_far, begin in begun:
        floor[row] = int(sum_so_far[first - 1]) if first else begin
        total[row] = int(sum_so_far[-1]) if len(sum_so_far) else begin
    return MinSplit(ranked, low, staying_pods, floor, slots[first:], total)
