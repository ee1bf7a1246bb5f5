"""Alike pods: of victims that differ only in age and name, the search looks at few.

Every pod that is looked at is priced and compared, and on a node there may be a hundred of one
workload. A set without a pod to spare has no more of a kind than free all that is needed by
themselves; and if it has some, the first of them in the order of eviction make it no dearer. So the
best set is among those first ones, and leaving out the others changes no result that an exact
search finds.

Alike are pods of one kind (`books.kinds`), of equal importance, with the same disruption budgets.
Pods of gangs, and those with GPUs of their own, are like no other.
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.bound_pods import NO_KIND
from aliquot.engine.state import State

Group = list[int]
"""The slots of pods that are alike."""


def groups(state: State, slots: Iterable[int], importance: NDArray[np.int64]) -> list[Group]:
    """These bound pods by what they are alike in; each that is like no other by itself."""
    found: dict[object, Group] = {}
    running, budgets = state.bound_pods, state.budgets
    kinds, names = running.kind, running.slots.names
    for slot in slots:
        kind: object = int(kinds[slot])
        if kind == NO_KIND:
            found["alone", slot] = [slot]
            continue
        if budgets:
            kind = kind, budgets.on(state.pods[str(names[slot])])
        found.setdefault((kind, int(importance[slot])), []).append(slot)
    return list(found.values())


def most_needed(frees: Mapping[object, int], needs: Mapping[object, int]) -> int:
    """How many pods that free so much each suffice for all that they free any of."""
    freed = ((key, amount) for key, amount in frees.items() if amount and key in needs)
    return max((-(-needs[key] // amount) for key, amount in freed), default=0)


def first(state: State, group: Group, most: int) -> Group:
    """At most so many pods of a group, in the order in which `victim_set` takes them.

    The youngest; of those of one age, the last by name.
    """
    if len(group) <= most:
        return group
    running = state.bound_pods
    ages = zip(running.started[group].tolist(), running.created[group].tolist(), strict=True)
    names = (running.name(str(running.slots.names[slot])) for slot in group)
    keys = dict(zip(group, zip(ages, names, strict=True), strict=True))
    return nlargest(most, group, key=keys.__getitem__)
