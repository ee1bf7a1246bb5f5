"""Rules about pods in the victim search: which pods stand in a claim's way, and where.

A host port that is taken, an anti-affinity of either side, a domain with too many pods of a spread:
each is a number of pods that must go, like room on a node, from a node or from all of a topology
domain. So is a volume that another pod uses. Pods that the claim must run near are the opposite:
not all of them may go. What is planned is tried in the ledger before it is believed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.label_sets import LabelSet, Selection
from aliquot.engine.model.pod_rules import NO_RULES, HostPort, PodRules
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import NO_DOMAIN
from aliquot.engine.placement.host_ports import clashes
from aliquot.engine.placement.pod_affinity import AffinityRules
from aliquot.engine.placement.pod_counts import Holders
from aliquot.engine.placement.preferences import OPEN
from aliquot.engine.placement.rule_sets import RuleSet
from aliquot.engine.placement.topology_spread import SpreadRules
from aliquot.engine.policies.eligible import Mask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Amounts = dict[object, int]
_Column = NDArray[np.int64]
_PARTNERS, _VOLUMES = "partners", "volumes"
_NEVER = 2**31
"""More pods than can go: where a rule can never be met."""


_Concerns = Callable[[LabelSet, PodRules], int]
"""How much the eviction of a pod counts for a rule; 0 if the rule is not about it."""


@dataclass(slots=True)
class _Conflict:
    """Pods of which some must go from a place before the claim may start there.

    A place is a node, or a domain. `needed` says by place how many, and `counts` what each of the
    bound pods counts for.
    """

    of_slot: _Column
    needed: _Column
    counts: _Column


@dataclass(slots=True)
class _Partners:
    """Pods that the claim must run near, and how many are in each domain."""

    of_slot: _Column
    number: _Column
    counts: _Column


class RuleRoom:
    """What rules ask of victims, for one claim; does nothing for a claim without rules."""

    def __init__(self, state: State, claim: Claim) -> None:
        self._state = state
        self._claim = claim
        self.matters = any(ask.rule_set is not None for ask in claim.asks)
        self._planned: list[tuple[int, tuple[str, ...]]] = []
        """The node and devices of each of the first pods of the claim."""
        self._victims: list[str] = []
        self._ask: Ask
        self._open: Mask
        self._conflicts: list[_Conflict] = []
        self._partners: list[_Partners] = []
        self._in_the_way: dict[int, frozenset[str]] = {}
        """By node, the pods whose volumes stand in the way."""

    def begin(self, ask: Ask) -> None:
        """Look at the next pod of the claim."""
        self._ask = ask
        self._conflicts, self._partners, self._in_the_way = [], [], {}
        if ask.rule_set is not None:
            with self._as_planned(self._victims):
                self._look(ask, ask.rule_set)

    @contextmanager
    def _as_planned(self, victims: Iterable[str]) -> Iterator[None]:
        """As if these victims and the leaving pods were gone, and the first pods were placed."""
        state, claim = self._state, self._claim
        with state.speculating() as speculation:
            gone = dict.fromkeys([*state.leaving, *victims])
            speculation.set_aside(uid for uid in gone if uid in state.ledger.entries)
            for pod, (node, devices) in zip(claim.pods, self._planned, strict=False):
                self._assume(pod.uid, node, devices)
            yield

    def _assume(self, uid: str, node: int, devices: tuple[str, ...]) -> None:
        state, pod = self._state, self._state.pods[uid]
        name = str(state.nodes.slots.names[node])
        quota = state.tree.quota_of(pod)
        state.ledger.assume(uid, state.bookings.booking(pod, quota, name, devices))

    def _look(self, ask: Ask, rule_set: RuleSet) -> None:
        """Work out which pods conflict with the claim, and where."""
        placement = self._state.placement
        sets, every = placement.rule_sets, np.arange(len(self._state.nodes.slots))
        column = np.zeros(len(every), dtype=np.int64)
        if rule_set.rules.volumes:
            placement.volumes.refuse(rule_set.rules, column)
        self._open = ~np.isin(column, (NodeRefusal.VOLUME_BINDING, NodeRefusal.VOLUME_ZONE))
        for port in rule_set.rules.ports:
            taken = np.zeros(len(every), dtype=np.int64)
            for slot, number in sets.ports.users(port):
                taken[slot] += number
            self._conflicts.append(_Conflict(every, taken, self._using(port)))
        followed = rule_set.follow(sets.counts)
        if followed is not None:
            assert rule_set.label_set is not None
            affinity, spread = followed
            self._look_at_affinity(affinity, rule_set.label_set)
            self._look_at_spread(spread, ask)

    def _look_at_affinity(self, affinity: AffinityRules, label_set: LabelSet) -> None:
        sets = self._state.placement.rule_sets
        for selection, counted, key in affinity.anti:
            there = counted.by_domain(sets.topology.domains(key), True)
            self._add_domain(key, there, self._selected(selection))
        for holders in sets.counts.repelling(label_set):
            there = holders.counted.by_domain(sets.topology.domains(holders.key), True)
            self._add_domain(holders.key, there, self._holding(holders))
        if affinity.partners is None or affinity.together is None:
            return
        self._open &= sets.affinity.near_partners(affinity, affinity.partners, with_held=False)
        counts = self._selected(affinity.together)
        for key in affinity.keys:
            domains = sets.topology.domains(key)
            number = affinity.partners.by_domain(domains, False).copy()
            if number[1:].any():
                self._partners.append(_Partners(domains.of_slot, number, counts))

    def _using(self, port: HostPort) -> _Column:
        """For each bound pod, how many of its host ports clash with this one."""
        return self._of_kin(lambda _, rules: clashes(port, rules.ports))

    def _selected(self, selection: Selection) -> _Column:
        """1 for each bound pod that is selected."""
        return self._of_kin(lambda found, _: selection in found.selections)

    def _holding(self, holders: Holders) -> _Column:
        """For each bound pod, how many such anti-affinities it has."""
        sets = self._state.placement.rule_sets.counts.label_sets
        term = holders.selection, holders.key
        return self._of_kin(
            lambda _, rules: sum(
                (sets.select(each.selector), each.topology_key) == term
                for each in rules.anti_affinity
            )
        )

    def _look_at_spread(self, spread: SpreadRules, ask: Ask) -> None:
        sets, where = self._state.placement.rule_sets, ask.shape.constraints
        keys = tuple(each.topology_key for each, _ in spread.required)
        for constraint, counted in spread.required:
            selection = sets.counts.label_sets.select(constraint.selector)
            excess = sets.spread.excess(constraint, counted, keys, where, True)
            excess[NO_DOMAIN] = _NEVER
            domains = sets.topology.domains(constraint.topology_key)
            counts = self._selected(selection)
            self._conflicts.append(_Conflict(domains.of_slot, excess, counts))

    def _add_domain(self, key: str, there: _Column, counts: _Column) -> None:
        needed = there.copy()
        needed[NO_DOMAIN] = 0
        of_slot = self._state.placement.rule_sets.topology.domains(key).of_slot
        self._conflicts.append(_Conflict(of_slot, needed, counts))

    def _of_kin(self, concerns: _Concerns) -> _Column:
        """For each bound pod, how much its eviction counts for a rule: looked up once a kin."""
        bound, sets = self._state.bound_pods, self._state.placement.rule_sets.counts.label_sets
        by_kin = np.zeros(len(bound.kins.known) + 1, dtype=np.int64)
        for number, kin in enumerate(bound.kins.known):
            if kin is not None:
                namespace, labels, rules = kin
                by_kin[number] = concerns(sets.of(namespace, labels), rules)
        found: _Column = by_kin[bound.kin]
        return found

    def sift(self, evictable: Mask, shortage: NDArray[np.float64]) -> Mask:
        """The nodes that rules leave open if all these pods go; adds how many must go there."""
        possible, bound = self._open.copy(), self._state.bound_pods
        for each in self._conflicts:
            going = np.flatnonzero(evictable & (each.counts > 0))
            places = each.of_slot[bound.node[going]]
            freed = np.bincount(places, each.counts[going], len(each.needed))
            left = each.needed - freed
            possible &= (left <= 0).take(each.of_slot)
            shortage += np.minimum(np.maximum(each.needed, 0), _NEVER).take(each.of_slot)
        return possible

    def needs(self, node: int) -> Amounts:
        """How many pods of each kind must go before the pod may start on a node."""
        found: Amounts = {}
        for number, each in enumerate(self._conflicts):
            needed = int(each.needed[each.of_slot[node]])
            if needed > 0:
                found["rule", number] = needed
        if self._volume_users(node):
            found["rule", _VOLUMES] = 1
        return found

    def limits(self, node: int) -> Amounts:
        """How many of the pods that the claim must run near may go."""
        return {
            (_PARTNERS, number): int(each.number[each.of_slot[node]]) - 1
            for number, each in enumerate(self._partners)
        }

    def in_the_way(self, node: int, evictable: Mask) -> list[int]:
        """The pods, by slot, that conflict with the claim if it starts on a node."""
        bound, found = self._state.bound_pods, np.zeros_like(evictable)
        for each in self._conflicts:
            place = each.of_slot[node]
            if each.needed[place] > 0:
                there = each.of_slot.take(bound.node, mode="clip") == place
                found |= (each.counts > 0) & there
        for uid in self._volume_users(node):
            if uid in bound.slots:
                found[bound.slots[uid]] = True
        slots: list[int] = np.flatnonzero(found & evictable & (bound.node >= 0)).tolist()
        return slots

    def frees(self, uid: str, node: int) -> Amounts:
        """What a pod's eviction frees of what the claim needs on a node."""
        slot, at = self._state.bound_pods.slots[uid], self._state.ledger.entries[uid].node
        found: Amounts = {
            ("rule", number): int(each.counts[slot])
            for number, each in enumerate(self._conflicts)
            if each.counts[slot] and each.of_slot[at] == each.of_slot[node]
        }
        if uid in self._volume_users(node):
            found["rule", _VOLUMES] = 1
        return found

    def draws(self, uid: str, node: int) -> Amounts:
        """What its eviction takes of the pods that the claim must run near."""
        slot, at = self._state.bound_pods.slots[uid], self._state.ledger.entries[uid].node
        return {
            (_PARTNERS, number): 1
            for number, each in enumerate(self._partners)
            if each.counts[slot] and each.of_slot[at] == each.of_slot[node]
        }

    def _volume_users(self, node: int) -> frozenset[str]:
        """The pods whose volumes stand in the way on a node; none if it is open by its volumes."""
        rules = NO_RULES if self._ask.rule_set is None else self._ask.rule_set.rules
        if not rules.volumes:
            return frozenset()
        found = self._in_the_way.get(node)
        if found is None:
            volumes, name = self._state.placement.volumes, str(self._state.nodes.slots.names[node])
            with self._as_planned(self._victims):
                users = () if volumes.admits(rules, name) else volumes.in_the_way(rules, name)
            found = self._in_the_way[node] = frozenset(users)
        return found

    def commit(self, node: int, devices: tuple[str, ...], victims: Sequence[str]) -> None:
        """Place the pod that was looked at on a node, with these victims gone."""
        if self.matters:
            self._planned.append((node, devices))
            self._victims += victims

    def admits(self, node: int, victims: Sequence[str]) -> bool:
        """May the pod that is looked at start on a node once these are gone as well?"""
        if self._ask.rule_set is None:
            return True
        with self._as_planned([*self._victims, *victims]):
            return bool(self._state.placement.ruled_out(self._ask)[node] == OPEN)

    def holds(
        self, nodes: Sequence[int], devices: Sequence[tuple[str, ...]], victims: Sequence[str]
    ) -> bool:
        """May all pods of the claim start, one after the other, once these victims are gone?"""
        if not self.matters:
            return True
        planned, self._planned = self._planned, []
        try:
            with self._as_planned(victims):
                claim = self._claim
                for pod, ask, node, option in zip(
                    claim.pods, claim.asks, nodes, devices, strict=True
                ):
                    if self._state.placement.ruled_out(ask)[node] != OPEN:
                        return False
                    self._assume(pod.uid, node, option)
        finally:
            self._planned = planned
        return True
