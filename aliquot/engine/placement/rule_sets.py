"""Rules about other pods, ports and volumes: which nodes they leave, and which they prefer.

A *rule set* is what such rules mean for pods of one kind: their own rules, and those of running
pods about them. Most pods have none and cost nothing. Nodes are refused in kube-scheduler's order
of plugins; each module of this folder judges one of them, for all nodes at once.

Nominated pods do not run yet: a node must be open with them and without them.
"""

from collections.abc import Collection, Iterable
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.label_sets import LabelSet, Selection
from aliquot.engine.books.ledger import Booking, Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.label_index import Labels
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.pod_rules import NO_RULES, PodRules
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import TopologyLabels
from aliquot.engine.placement.host_ports import HostPorts
from aliquot.engine.placement.pod_affinity import AffinityRules, PodAffinity
from aliquot.engine.placement.pod_counts import Counted, PodCounts
from aliquot.engine.placement.preferences import OPEN, NodePreferences
from aliquot.engine.placement.topology_spread import SpreadRules, TopologySpread
from aliquot.engine.placement.volumes.filter import VolumeFilter

_Column = NDArray[np.int64]


MOST_REMEMBERED = 16_384
"""Selections, label sets, labels and rule sets that are remembered at least: some MB."""


class RuleSet:
    """The rules of pods of one kind, and their label set, by which others have rules about them."""

    __slots__ = ("__weakref__", "_affinity", "_read", "_spread", "label_set", "rules")

    def __init__(self, rules: PodRules, label_set: LabelSet | None) -> None:
        self.rules = rules
        self.label_set = label_set
        self._read = -1
        self._affinity: AffinityRules
        self._spread: SpreadRules

    def follow(self, counts: PodCounts) -> tuple[AffinityRules, SpreadRules] | None:
        """What is counted for these rules; None if no pod has rules about other pods."""
        if self.label_set is None:
            return None
        if self._read != counts.version:
            self._affinity = AffinityRules(counts, self.rules, self.label_set)
            self._spread = SpreadRules(counts, self.rules)
            self._read = counts.version
        return self._affinity, self._spread


class RuleSets:
    """All rule sets; judges nodes by them."""

    def __init__(
        self,
        nodes: Nodes,
        ledger: Ledger,
        preferences: NodePreferences,
        volumes: VolumeFilter,
    ) -> None:
        self._nodes = nodes
        self.volumes = volumes
        self.counts = PodCounts(ledger, nodes)
        self.topology = TopologyLabels(nodes)
        self.ports = HostPorts(nodes)
        self.affinity = PodAffinity(self.counts, self.topology)
        self.spread = TopologySpread(nodes, self.topology, preferences)
        self._known: dict[tuple[PodRules, LabelSet | None], RuleSet] = {}
        self._passing: WeakValueDictionary[tuple[PodRules, LabelSet | None], RuleSet] = (
            WeakValueDictionary()
        )
        """Those of pods with volumes, which may be of one pod each: forgotten with the pod."""
        self._most = MOST_REMEMBERED
        """How much is remembered before what is gone is forgotten."""
        ledger.node_tallies.append(self)

    def post(self, booking: Booking, sign: int, held: bool) -> None:
        """Count a pod that is booked on a node."""
        if booking.rules is not NO_RULES:
            self.ports.post(booking, sign, held)
            self.volumes.post(booking, sign)
        if self.counts.active:
            self.counts.post(booking, sign, held)

    def renew(self, pods: Collection[Pod]) -> bool:
        """Forget the rules of pods that are gone, where they have become many; were they?"""
        if len(self.counts.label_sets) + len(self._known) <= self._most:
            return False
        self._known.clear()
        self._passing.clear()
        self.counts.renew(pods)
        self._most = max(MOST_REMEMBERED, 2 * len(self.counts.label_sets) + 2 * len(pods))
        return True

    def note(self, pod: Pod) -> None:
        """A pod is known: its rules may be about pods that wait."""
        if pod.rules is not NO_RULES:
            self.counts.note(pod.rules)

    def of(self, pod: Pod) -> RuleSet | None:
        """The rule set of a pod; None if no rules are its own or about it."""
        label_set = None
        if self.counts.active:
            label_set = self.counts.label_sets.of(pod.namespace, pod.labels)
        if pod.rules is NO_RULES and (label_set is None or not self.counts.concerns(label_set)):
            return None
        key = pod.rules, label_set
        known = self._passing if pod.rules.volumes else self._known
        found = known.get(key)
        if found is None:
            found = known[key] = RuleSet(*key)
        return found

    def take_split(self) -> dict[str, set[Labels]]:
        """By namespace, the labels of pods whose rule set may be another now; told once."""
        split, found = self.counts.label_sets.split, dict[str, set[Labels]]()
        for namespace, labels in split:
            found.setdefault(namespace, set()).add(labels)
        split.clear()
        return found

    def refuse(
        self,
        rule_set: RuleSet,
        where: NodeConstraints,
        column: _Column,
        short: NDArray[np.bool_] | None = None,
    ) -> None:
        """Note in the column, for each open node (0), the first rule that refuses it.

        `short`: nodes that have too little free, to be noted in the order of plugins as well.
        """
        self.ports.refuse(rule_set.rules.ports, column)
        if short is not None:
            column[short & (column == OPEN)] = NodeRefusal.RESOURCES
        if rule_set.rules.volumes:
            self.volumes.refuse(rule_set.rules, column)
        followed = rule_set.follow(self.counts)
        if followed is None:
            return
        affinity, spread = followed
        assert rule_set.label_set is not None
        repelling = self.counts.repelling(rule_set.label_set)
        counted = (*_all_counted(affinity, spread), *(each.counted for each in repelling))
        for with_held in (False, True) if any(each.held for each in counted) else (False,):
            if spread.required:
                self.spread.refuse(spread, where, column, with_held)
            self.affinity.refuse(affinity, repelling, column, with_held)

    def must_be_near(self, rule_set: RuleSet | None) -> Selection | None:
        """The pods that such a pod must run near, if it must."""
        followed = None if rule_set is None else rule_set.follow(self.counts)
        return None if followed is None else followed[0].together

    def own_keys(self, rule_set: RuleSet) -> tuple[str, ...]:
        """The topology keys of affinities to pods of its own kind, of which none runs yet."""
        followed = rule_set.follow(self.counts)
        if followed is None or followed[0].partners is None or not followed[0].is_partner:
            return ()
        keys, partners = followed[0].keys, followed[0].partners
        first = not any(
            self.affinity.has_any(partners, self.topology.domains(key), False) for key in keys
        )
        return keys if first else ()

    def fingerprint(self, rule_set: RuleSet) -> tuple[object, ...]:
        """Equal as long as these rules open the same nodes, if no node changes."""
        found: list[object] = [self.ports.fingerprint(rule_set.rules.ports)]
        if rule_set.rules.volumes:
            found.append(self.volumes.version)
        followed = rule_set.follow(self.counts)
        if followed is not None:
            assert rule_set.label_set is not None
            repelling = (each.counted for each in self.counts.repelling(rule_set.label_set))
            counted = (*_all_counted(*followed), *repelling)
            found += [self.counts.version, *(each.fingerprint for each in counted)]
        return tuple(found)

    def prefers(self, rule_set: RuleSet) -> bool:
        """May these rules make one node better than another?"""
        followed = rule_set.follow(self.counts)
        if followed is None:
            return False
        affinity, spread = followed
        assert rule_set.label_set is not None
        preferring = self.counts.preferring(rule_set.label_set)
        return bool(spread.preferred) or self.affinity.prefers(affinity, preferring)

    def affinity_points(self, rule_set: RuleSet, count: int) -> _Column:
        """What the pods near each node score, before it is normalised."""
        followed = rule_set.follow(self.counts)
        if followed is None:
            return np.zeros(count, dtype=np.int64)
        assert rule_set.label_set is not None
        preferring = self.counts.preferring(rule_set.label_set)
        return self.affinity.points(followed[0], preferring, count)

    def spread_points(
        self, rule_set: RuleSet, where: NodeConstraints, feasible: NDArray[np.bool_]
    ) -> _Column | None:
        """What the preferred spread scores each feasible node, 0 to 100; None without any."""
        followed = rule_set.follow(self.counts)
        if followed is None or not followed[1].preferred:
            return None
        return self.spread.points(followed[1], where, feasible)


def _all_counted(affinity: AffinityRules, spread: SpreadRules) -> Iterable[Counted]:
    """All counts of running pods that required rules depend on."""
    partners = () if affinity.partners is None else (affinity.partners,)
    anti = (counted for _, counted, _ in affinity.anti)
    return (*partners, *anti, *(counted for _, counted in spread.required))
