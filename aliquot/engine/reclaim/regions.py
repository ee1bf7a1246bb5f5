"""The domains in which victims are sought for a claim with a topology demand: the cheapest first.

Room is freed in one domain, or it is freed in vain. How many pods of the claim each domain would
hold, and how many pods must go for that, is estimated for all domains at once: by rising importance
of the pods that may be evicted, until the claim fits. The search works out the best few exactly,
and the others only as long as none of them has a plan.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.gang_domains import GangDomains, Level, first_nodes
from aliquot.engine.model.gang import Topology
from aliquot.engine.placement.ask import Ask
from aliquot.engine.policies.eligible import Eligible, Mask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

FEW_NODES = 24
"""Domains are searched until they have more nodes than this together, and one has a plan: so small
clusters get the best of all domains, and in large ones a decision takes milliseconds."""
_MOST_STEPS = 8
"""At how many steps of importance domains are looked at: each adds up all evictable pods."""

Numbers = NDArray[np.int64]


class Region(NamedTuple):
    """A domain in which a claim would fit if eligible pods were evicted: its nodes, its pods."""

    nodes: Mask
    pods: Mask


class Regions:
    """For one claim and one group of eligible pods: the domains to search, the cheapest first."""

    def __init__(
        self,
        state: State,
        claim: Claim,
        topology: Topology,
        eligible: Eligible,
        classes: list[str] | None,
    ) -> None:
        self._state = state
        self._asks = Counter(claim.asks)
        self._eligible = eligible
        self._classes = classes
        self._levels = GangDomains(state, claim, topology, classes).levels
        self._open = {ask: self._open_to(ask) for ask in self._asks}
        bound = state.bound_pods
        self._pods = np.flatnonzero(eligible.evictable)
        self._nodes = bound.node[self._pods]
        order = eligible.order
        levels = bound.priority if order is None else order.levels
        self._importance = levels[self._pods]

    def _open_to(self, ask: Ask) -> Mask:
        """The nodes on which such a pod may start by this rule, whatever is free there."""
        state = self._state
        found = state.placement.open_nodes(ask) & state.placement.device_nodes(ask)
        if self._eligible.nodes is not None:
            found &= self._eligible.nodes
        if self._classes is not None and ask.by_class:
            found &= state.nodes.of_classes(self._classes)
        return found

    def by_level(self) -> list[list[tuple[Level, int]]]:
        """The domains of each level that would hold the claim, narrow levels first, in order."""
        now = self._fits(None)
        after = [self._fits(step) for step in self._steps()]
        return [
            [(level, number) for number in self._in_order(level, now, after)]
            for level in self._levels
        ]

    def region(self, level: Level, number: int) -> Region:
        """The nodes of a domain, and the eligible pods there."""
        nodes = level.domains.of_slot == number
        pods = self._eligible.evictable.copy()
        pods[self._pods] = nodes[self._nodes]
        return Region(nodes, pods)

    def _steps(self) -> Numbers:
        """Up to which importance pods may go, step by step; the last is the highest."""
        found = np.unique(self._importance)
        if len(found) > _MOST_STEPS:
            found = found[np.linspace(0, len(found) - 1, _MOST_STEPS).astype(np.int64)]
        return found

    def _fits(self, step: int | None) -> dict[Ask, Numbers]:
        """How many pods of each ask fit on each node once the pods up to a step are gone."""
        state, count = self._state, len(self._state.nodes.slots)
        going = None if step is None else self._importance <= step
        freed: dict[int, NDArray[np.float64]] = {}
        found: dict[Ask, Numbers] = {}
        for ask, number in self._asks.items():
            fits = np.full(count, number, dtype=np.int64)
            for row, amount in ask.room:
                if row not in freed:
                    free = state.placement.free_soon(row, state.leaving.room)[:count]
                    freed[row] = free.astype(np.float64)
                    if going is not None:
                        room = state.bound_pods.room.data[row][self._pods[going]]
                        freed[row] += np.bincount(self._nodes[going], room, count)
                np.minimum(fits, (freed[row] // amount).astype(np.int64), out=fits)
            fits[(fits < 0) | ~self._open[ask]] = 0
            found[ask] = fits
        return found

    def _in_order(
        self, level: Level, now: dict[Ask, Numbers], after: list[dict[Ask, Numbers]]
    ) -> list[int]:
        """The domains that would hold the claim: by the importance of the victims, their number."""
        of_slot, size = level.domains.of_slot, level.domains.size
        step_of = np.full(size, len(after) + 1, dtype=np.int64)
        for step, fits in reversed(list(enumerate([now, *after]))):
            holds = np.ones(size, dtype=bool)
            for ask, number in self._asks.items():
                holds &= np.bincount(of_slot, fits[ask], size) >= number
            step_of[holds] = step
        found = level.allowed[step_of[level.allowed] <= len(after)]
        victims = self._victims(level, now, after)
        first = first_nodes(self._state, level.domains)
        order = np.lexsort((first[found], victims[found], step_of[found]))
        numbers: list[int] = found[order].tolist()
        return numbers

    def _victims(
        self, level: Level, now: dict[Ask, Numbers], after: list[dict[Ask, Numbers]]
    ) -> NDArray[np.float64]:
        """About how many pods must go from each domain: its cheapest nodes are freed first."""
        of_slot, size, count = level.domains.of_slot, level.domains.size, len(level.domains.of_slot)
        total = np.zeros(size)
        pods = np.bincount(self._nodes, minlength=count)[:count]
        for ask, number in self._asks.items() if after else ():
            gained = np.maximum(after[-1][ask] - now[ask], 0)
            lacks = number - np.bincount(of_slot, now[ask], size)
            price = np.where(gained > 0, pods / np.maximum(gained, 1), np.inf)
            order = np.lexsort((price, of_slot))
            order = order[np.isfinite(price[order])]
            where, gains = of_slot[order], gained[order]
            before = np.cumsum(gains) - gains
            before -= before[np.searchsorted(where, where)]
            used = np.clip(lacks[where] - before, 0, gains)
            total += np.bincount(where, used * price[order], size)
        return total
