"""Topology spread: how evenly the pods of a kind are to be spread over domains.

The meaning is that of kube-scheduler's `PodTopologySpread`. With the pod, its domain may have at
most `maxSkew` more of the selected pods than the domain with the fewest; where there are fewer
domains than `minDomains`, the fewest is 0. Which nodes count depends on the pod: they have the
labels of all its required constraints, and by default match its node selector and affinity.
Terminating pods do not count.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.model.pod_rules import PodRules, SpreadConstraint
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import NO_DOMAIN, Domains, TopologyLabels
from aliquot.engine.placement.pod_counts import Counted, PodCounts
from aliquot.engine.placement.preferences import NodePreferences

_HOSTNAME = "kubernetes.io/hostname"
_MOST_KEPT = 1_024
"""Sets of nodes that count, kept: at 5,000 nodes 80 KB each."""
_UNIT = 2**20
"""Scores are integers: a weight, such as log(5), is a whole number out of this."""
_BEST = 100
_Column = NDArray[np.int64]
_Key = tuple[str, tuple[str, ...], NodeConstraints | None, NodeConstraints | None]


class SpreadRules:
    """The constraints of one kind of pods, with the counts of the pods that they select."""

    def __init__(self, counts: PodCounts, rules: PodRules) -> None:
        followed = [
            (each, counts.selected(counts.label_sets.select(each.selector)))
            for each in rules.spread
        ]
        self.required = [(each, counted) for each, counted in followed if each.required]
        self.preferred = [(each, counted) for each, counted in followed if not each.required]


class TopologySpread:
    """Judges nodes by how evenly pods would be spread."""

    def __init__(self, nodes: Nodes, labels: TopologyLabels, preferences: NodePreferences) -> None:
        self._nodes = nodes
        self._labels = labels
        self._preferences = preferences
        self._counting: dict[_Key, tuple[tuple[int, ...], Domains]] = {}

    def refuse(
        self, rules: SpreadRules, where: NodeConstraints, column: _Column, with_held: bool
    ) -> None:
        """Note in the column the open nodes that a required constraint rules out."""
        keys = tuple(each.topology_key for each, _ in rules.required)
        for constraint, counted in rules.required:
            refused = self._too_many(constraint, counted, keys, where, with_held)
            column[refused & (column == 0)] = NodeRefusal.SPREAD

    def _too_many(
        self,
        constraint: SpreadConstraint,
        counted: Counted,
        keys: tuple[str, ...],
        where: NodeConstraints,
        with_held: bool,
    ) -> NDArray[np.bool_]:
        """The nodes that are in no domain, or in one that would have too many pods."""
        excess = self.excess(constraint, counted, keys, where, with_held) > 0
        excess[NO_DOMAIN] = True
        refused: NDArray[np.bool_] = excess.take(
            self._labels.domains(constraint.topology_key).of_slot
        )
        return refused

    def excess(
        self,
        constraint: SpreadConstraint,
        counted: Counted,
        keys: tuple[str, ...],
        where: NodeConstraints,
        with_held: bool,
    ) -> _Column:
        """By domain, how many selected pods must leave before the pod may start there."""
        counting = self._counting_nodes(constraint, keys, where)
        counts = counted.lasting_by_domain(counting, with_held)
        here = counts[counting.present]
        enough = len(here) >= max(constraint.min_domains, 1)
        least = int(here.min()) if enough else 0
        found: _Column = counts + (constraint.counts_itself - least - constraint.max_skew)
        return found

    def _counting_nodes(
        self, constraint: SpreadConstraint, keys: tuple[str, ...], where: NodeConstraints
    ) -> Domains:
        """The domains of the constraint's label, of the nodes that count for it."""
        affinity = taints = None
        if constraint.honors_affinity and (where.selector or where.required is not None):
            affinity = NodeConstraints(selector=where.selector, required=where.required)
        if constraint.honors_taints:
            taints = NodeConstraints(tolerations=where.tolerations)
        others = tuple(sorted({*keys} - {constraint.topology_key}))
        key = constraint.topology_key, others, affinity, taints
        own = self._labels.domains(constraint.topology_key)
        if not others and affinity is None and taints is None:
            return own
        all_others = [self._labels.domains(each) for each in others]
        moment = (self._nodes.version, own.version, *(each.version for each in all_others))
        found = self._counting.pop(key, None)
        domains = Domains() if found is None else found[1]
        if found is None or found[0] != moment:
            counts = np.ones(len(own.of_slot), dtype=bool)
            for each in all_others:
                counts &= each.labelled
            if affinity is not None:
                counts &= self._preferences.selected(affinity)
            if taints is not None:
                counts &= self._preferences.tolerated(taints)
            domains.put(np.where(counts, own.of_slot, NO_DOMAIN), own.size)
        self._counting[key] = moment, domains
        if len(self._counting) > _MOST_KEPT:
            del self._counting[next(iter(self._counting))]
        return domains

    def points(
        self, rules: SpreadRules, where: NodeConstraints, feasible: NDArray[np.bool_]
    ) -> _Column:
        """The normalised score of each feasible node, 0 to 100: the emptier its domains, the more.

        Only nodes with the labels of all preferred constraints count, and have points.
        """
        keys = tuple(each.topology_key for each, _ in rules.preferred)
        all_domains = [self._labels.domains(key) for key in keys]
        scored = feasible.copy()
        for domains in all_domains:
            scored &= domains.labelled
        if not scored.any():
            return np.zeros(len(feasible), dtype=np.int64)
        raw = np.zeros(len(feasible), dtype=np.int64)
        for (constraint, counted), domains in zip(rules.preferred, all_domains, strict=True):
            if constraint.topology_key == _HOSTNAME:
                size = int(scored.sum())
                here = _on_nodes(counted, len(feasible))
            else:
                size = len(np.unique(domains.of_slot[scored]))
                counting = self._counting_nodes(constraint, keys, where)
                here = counted.lasting_by_domain(counting, False).take(domains.of_slot)
            weight = round(float(np.log(size + 2)) * _UNIT)
            raw += here * weight + (constraint.max_skew - 1) * _UNIT
        scores = (raw + _UNIT // 2) // _UNIT
        least, most = int(scores[scored].min()), int(scores[scored].max())
        if most == 0:
            return np.where(scored, _BEST, 0)
        return np.where(scored, _BEST * (most + least - scores) // most, 0)


def _on_nodes(counted: Counted, count: int) -> _Column:
    """How many of the pods that do not terminate run on each node."""
    found = np.zeros(count, dtype=np.int64)
    for slot, number in counted.running.on.items():
        found[slot] += number
    for slot, number in counted.ending.on.items():
        found[slot] -= number
    return found
