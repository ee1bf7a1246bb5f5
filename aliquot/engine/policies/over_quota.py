"""The walk over a quota's pods, the most important first, until their sum passes min.

Those before that point are in-quota, and what they hold is the quota's floor; that pod and all
after it are over-quota. The core of a gang is one or the other as a whole. Walks are kept until a
pod of the quota comes or goes, or its min changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.state import State

Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a quota's pods stand, counted in some of the resources."""

    ranked: list[str]
    low: tuple[int, ...]
    staying: tuple[int, ...]
    """What those hold who were asked to go and do not: the walk begins with that."""
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


def walk(state: State, slot: int, rows: Rows) -> Walk:
    """The walk over the pods of a quota, in these resources."""
    low = tuple(state.tree.min.get(row, slot) for row in rows)
    held = _staying(state, slot)
    staying = tuple(held.get(row, 0) for row in rows)
    ranked = state.running.ranked(slot)
    kept = state.walks.get((slot, rows))
    begun = (low, staying)
    if isinstance(kept, Walk) and kept.ranked is ranked and (kept.low, kept.staying) == begun:
        return kept
    state.walks[slot, rows] = fresh = _walk(state, slot, ranked, rows, low, staying)
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


def _walk(
    state: State,
    slot: int,
    ranked: list[str],
    rows: Rows,
    low: tuple[int, ...],
    staying: tuple[int, ...],
) -> Walk:
    """Add up in Python's own integers: no sum of amounts is too large for them."""
    slots = np.array([state.running.slots[uid] for uid in ranked], dtype=np.int64)
    sums = [
        np.cumsum(state.running.charge.data[row][slots].astype(object)) + begin
        for row, begin in zip(rows, staying, strict=True)
    ]
    passed = [total > bound for total, bound in zip(sums, low, strict=True)]
    first = min((int(each.argmax()) for each in passed if each.any()), default=len(ranked))
    first = state.running.unit_start(slot, first)
    begun = zip(rows, sums, staying, strict=True)
    floor, total = {}, {}
    for row, sum_so_far, begin in begun:
        floor[row] = int(sum_so_far[first - 1]) if first else begin
        total[row] = int(sum_so_far[-1]) if len(sum_so_far) else begin
    return Walk(ranked, low, staying, floor, slots[first:], total)


def over_quota(units: Iterable[Sequence[tuple[Pod, Amounts]]], floor: dict[str, int]) -> set[str]:
    """The uids that are over-quota: from the unit with which the sum first passes the floor, on.

    Units (single pods, and the cores of gangs) come in importance order, each pod with what it is
    charged; `floor` holds min for every resource that counts.
    """
    total = dict.fromkeys(floor, 0)
    over: set[str] = set()
    for unit in units:
        for _, charge in unit:
            for resource, amount in charge:
                if resource in total:
                    total[resource] += amount
        if over or any(total[resource] > floor[resource] for resource in floor):
            over.update(pod.uid for pod, _ in unit)
    return over
