"""A lower bound of what it costs to free room on a node, from columns.

Pricing the units of a node and searching a set among them takes some hundred times as long as this.
A node whose bound is not below the cost of the best set so far is passed over; where the pods of
the nodes are alike, as those of one workload are, that is every node but the best.

The bound is of any pods that free the room, whatever units they are evicted in and whatever limits
there are: a set of units is such a set of pods, and is no cheaper.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.bound_pods import BoundPods
from aliquot.engine.reclaim.victim_set import PRIORITY_OFFSET, Age, Cost, cost

Column = NDArray[np.int64]
_LARGEST = 2**48
"""An amount beyond this is not bounded: so many pods as a node has never add up to an overflow."""


class _Least(NamedTuple):
    """The least of each part of the cost of freeing an amount of one resource."""

    violations: int
    highest: int
    total: int
    pods: int
    oldest: Age
    """The youngest that the oldest of the most important victims can be."""


class CostBound:
    """Bounds the cost of victims on a node; `protected` pods violate a disruption budget each."""

    def __init__(
        self, pods: BoundPods, importance: Column, protected: NDArray[np.bool_] | None
    ) -> None:
        self._pods = pods
        self._importance = importance
        self._protected = protected

    def least(self, here: Column, shortages: dict[int, int]) -> Cost | None:
        """The least cost of some of these pods that free what is short; None if all do not."""
        found: list[_Least] = []
        for row, amount in shortages.items():
            if amount > _LARGEST:
                continue
            frees = np.minimum(self._pods.room.data[row][here], amount)
            useful = frees > 0
            if int(frees.sum()) < amount:
                return None
            found.append(self._least(here[useful], frees[useful], amount))
        if not found:
            return cost((), {})
        highest = max(each.highest for each in found)
        oldest = min(each.oldest for each in found if each.highest == highest)
        return (
            max(each.violations for each in found),
            highest,
            max(each.total for each in found),
            max(each.pods for each in found),
            (-oldest[0], -oldest[1]),
        )

    def _least(self, pods: Column, frees: Column, amount: int) -> _Least:
        """Of pods that together free at least this amount of a resource."""
        importance = self._importance[pods]
        if importance.min() == importance.max():
            return self._least_of_equals(pods, frees, amount)
        order = np.argsort(importance, kind="stable")
        levels = importance[order]
        highest = int(levels[np.searchsorted(np.cumsum(frees[order]), amount)])
        count = _fewest(frees, amount)
        total = int(levels[: count - 1].sum()) + max(int(levels[count - 1]), highest)
        at_highest, below = importance == highest, importance < highest
        number = _fewest(frees[at_highest], amount - int(frees[below].sum()))
        return _Least(
            self._violations(pods, frees, amount),
            highest,
            total + count * PRIORITY_OFFSET,
            count,
            self._youngest(pods[at_highest], number),
        )

    def _least_of_equals(self, pods: Column, frees: Column, amount: int) -> _Least:
        """The same for pods of one importance."""
        highest, count = int(self._importance[pods[0]]), _fewest(frees, amount)
        return _Least(
            self._violations(pods, frees, amount),
            highest,
            count * (highest + PRIORITY_OFFSET),
            count,
            self._youngest(pods, count),
        )

    def _violations(self, pods: Column, frees: Column, amount: int) -> int:
        """How many protected pods must be among them."""
        if self._protected is None:
            return 0
        protected = self._protected[pods]
        rest = amount - int(frees[~protected].sum())
        return _fewest(frees[protected], rest) if rest > 0 else 0

    def _youngest(self, pods: Column, number: int) -> Age:
        """The age of the oldest of the youngest pods, so many of them."""
        started, created = self._pods.started[pods], self._pods.created[pods]
        at = np.lexsort((created, started))[-number]
        return int(started[at]), int(created[at])


def _fewest(frees: Column, amount: int) -> int:
    """How many of these it takes at least to free an amount that all together free."""
    return int(np.searchsorted(np.cumsum(np.sort(frees)[::-1]), amount)) + 1
