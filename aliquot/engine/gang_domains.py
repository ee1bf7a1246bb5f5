"""The domains that a claim with a topology demand may start in: which of them hold it.

A domain is the nodes with one value of a label, such as a rack. Where pods of the gang are placed
already, only the domain that they are in comes into question. How many pods fit is counted for all
domains of a level at once: by node, what is free divided by what a pod asks for, added up by
domain. By rules about other pods and by devices fewer may fit, so that placing decides.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.gang import Topology
from aliquot.engine.model.reasons import ROOM, RULES, Reason, Refusal
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.domains import NO_DOMAIN, Domains, Mask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_MOST_ON_NODE = 1 << 20
"""Beyond so many pods on one node, one is as good as another: sums by domain stay exact floats."""


class Level(NamedTuple):
    """A level of the topology: its label, the domains there, and those that may be used."""

    key: str
    domains: Domains
    allowed: NDArray[np.int64]


class Best(NamedTuple):
    """The domain of a level that has room for most pods of a claim: how many, and of which."""

    level: Level
    number: int
    fits: int
    scarcest: tuple[Ask, int]
    """The ask of which the domain holds the smallest part, and how many of it."""


class GangDomains:
    """For one claim: its levels, and in which domains of them it fits now."""

    def __init__(
        self, state: State, claim: Claim, topology: Topology, classes: list[str] | None = None
    ) -> None:
        """`classes`: only on nodes of these, where a pod's charge depends on the class."""
        self._state = state
        self._claim = claim
        self.topology = topology
        self._classes = classes
        self._core = Counter(claim.asks)
        self._all = Counter(self._core)
        self._all.update(state.placement.ask(pod) for pod in claim.others)

    @property
    def size(self) -> int:
        """How many pods the claim has."""
        return self._claim.size

    @property
    def first_ask(self) -> Ask:
        """The ask of its first pod."""
        return self._claim.asks[0]

    @cached_property
    def joined(self) -> NDArray[np.int64]:
        """The nodes of the pods of the gang that stay, by slot, each once."""
        if not self._claim.joins:
            return np.zeros(0, dtype=np.int64)
        state, own = self._state, {pod.uid for pod in self._claim.members}
        entries, pods = state.ledger.entries, state.pods
        placed = {
            entry.node
            for uid in state.gangs.members.get(str(self._claim.gang), ())
            if uid not in own
            and (entry := entries.get(uid)) is not None
            and entry.stage >= Stage.ASSUMED
            and state.is_staying(pods[uid])
        }
        return np.array(sorted(placed), dtype=np.int64)

    @cached_property
    def levels(self) -> list[Level]:
        """The levels at which the claim may run in one domain, from narrow to wide."""
        return [
            Level(key, domains, allowed)
            for key, domains, allowed in map(self._level, self.topology.levels)
            if len(allowed)
        ]

    def _level(self, key: str) -> Level:
        domains = self._state.placement.rule_sets.topology.domains(key)
        allowed = domains.present
        if len(self.joined):
            allowed = np.unique(domains.of_slot[self.joined])
            if len(allowed) > 1 or allowed[0] == NO_DOMAIN:
                allowed = np.zeros(0, dtype=np.int64)
        return Level(key, domains, allowed)

    @cached_property
    def _by_node(self) -> dict[Ask, NDArray[np.int64]]:
        """How many pods of each ask fit on each node."""
        placement = self._state.placement
        found = {ask: placement.pods_by_node(ask, _MOST_ON_NODE) for ask in self._all}
        for ask, fits in found.items() if self._classes is not None else ():
            if ask.by_class:
                fits[~self._state.nodes.of_classes(self._classes or [])] = 0
        return found

    def _sums(self, level: Level) -> dict[Ask, NDArray[np.float64]]:
        """How many pods of each ask fit in each domain of a level."""
        of_slot, size = level.domains.of_slot, level.domains.size
        return {
            ask: np.bincount(of_slot, fits, size).astype(np.float64, copy=False)
            for ask, fits in self._by_node.items()
        }

    def masks(self) -> Iterator[Mask]:
        """The nodes of each domain that could hold the claim: narrow levels first.

        Of one level first the domains that could hold all waiting pods of the gang, and then the
        fullest: where the fewest more such pods would fit.
        """
        for level in self.levels:
            sums = self._sums(level)
            fits = _hold(sums, self._core)[level.allowed]
            found = level.allowed[fits]
            if not len(found):
                continue
            for number in self._in_order(level, found, sums):
                yield level.domains.of_slot == number

    def _in_order(
        self, level: Level, found: NDArray[np.int64], sums: dict[Ask, NDArray[np.float64]]
    ) -> list[int]:
        if len(found) == 1:
            return [int(found[0])]
        more = np.zeros(len(found))
        for ask, each in sums.items():
            more += each[found] / self._all[ask]
        lacks = ~_hold(sums, self._all)[found]
        order = np.lexsort((first_nodes(self._state, level.domains)[found], more, lacks))
        numbers: list[int] = found[order].tolist()
        return numbers

    def best(self) -> Best | None:
        """The domain of the widest level that has room for most pods; None if there is none."""
        levels = [each for each in self.levels if each.key == self.topology.levels[-1]]
        if not levels:
            return None
        (level,) = levels
        sums = self._sums(level)
        fits = np.zeros(level.domains.size)
        for ask, number in self._core.items():
            fits += np.minimum(sums[ask], number)
        numbers = level.allowed
        first = first_nodes(self._state, level.domains)[numbers]
        best = int(numbers[np.lexsort((first, -fits[numbers]))[0]])
        scarcest = min(self._core, key=lambda ask: float(sums[ask][best]) / self._core[ask])
        return Best(level, best, int(fits[best]), (scarcest, int(sums[scarcest][best])))

    def refusal(self, best: Best | None, fits: int | None = None) -> Refusal:
        """Why no domain holds the claim; `fits`: by placing, so many pods fit in the best one."""
        key, claim = self.topology.levels[-1], self._claim
        rules = any(ask.rule_set is not None for ask in self._all)
        watch = (ROOM, RULES) if rules else (ROOM,)
        whole = f"gang {claim.gang}: all pods in one domain of {key}"
        if best is None:
            words = f"{whole}: {self._no_domain(key)}"
            return Refusal(Reason.TOPOLOGY_UNSATISFIED, words, watch=watch)
        value = self._state.placement.rule_sets.topology.value(key, best.number)
        number = best.fits if fits is None else min(fits, best.fits)
        every = sum(
            min(int(by_node.sum()), self._core[ask])
            for ask, by_node in self._by_node.items()
            if ask in self._core
        )
        if len(self.joined):
            where = f"its running pods are in {value}, which has room for {number} of {claim.size}"
        else:
            where = f"the best of {len(best.level.allowed)}, {value}, has room for {number}"
            where += f" of {claim.size} pods"
        together = "" if every <= number else f"; all nodes together have for {every}"
        return Refusal(Reason.TOPOLOGY_UNSATISFIED, f"{whole}: {where}{together}", watch=watch)

    def _no_domain(self, key: str) -> str:
        """Why there is no domain to start in."""
        domains = self._state.placement.rule_sets.topology.domains(key)
        if not len(domains.present):
            return "no node has this label"
        found = sorted(set(domains.of_slot[self.joined].tolist()))
        if found == [NO_DOMAIN]:
            return "its running pods are on nodes without this label"
        values = (
            "none"
            if each == NO_DOMAIN
            else self._state.placement.rule_sets.topology.value(key, each)
            for each in found
        )
        return f"its running pods are in several: {', '.join(values)}"


def first_nodes(state: State, domains: Domains) -> NDArray[np.int64]:
    """The first node of each domain in the order of names, by which ties are broken."""
    found = np.full(domains.size, len(domains.of_slot), dtype=np.int64)
    np.minimum.at(found, domains.of_slot, state.nodes.rank)
    return found


def _hold(sums: Mapping[Ask, NDArray[np.float64]], wanted: Mapping[Ask, int]) -> Mask:
    """Which domains have room for so many of each ask, as far as each by itself goes."""
    found: Mask = np.logical_and.reduce([sums[ask] >= n for ask, n in wanted.items()])
    return found
