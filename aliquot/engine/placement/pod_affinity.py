"""Pod affinity: near which running pods a pod must run, or must not, and near which it prefers to.

The meaning is that of kube-scheduler's `InterPodAffinity`. A term is met in a whole topology
domain. Required affinity needs, in the domain of each term, a running pod that matches all terms;
the first pod of a group that has affinity to itself may go wherever the labels of the terms are.
Required anti-affinity counts both ways: that of the pod, and that of running pods against it.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.label_sets import LabelSet, Selection
from aliquot.engine.model.pod_rules import PodRules
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import Domains, TopologyLabels
from aliquot.engine.placement.pod_counts import Counted, Holders, PodCounts

_Column = NDArray[np.int64]


class AffinityRules:
    """The terms of one kind of pods, and of other pods about them, with their counts."""

    def __init__(self, counts: PodCounts, rules: PodRules, label_set: LabelSet) -> None:
        sets = counts.label_sets
        anti = [(sets.select(term.selector), term.topology_key) for term in rules.anti_affinity]
        self.anti = [(selection, counts.selected(selection), key) for selection, key in anti]
        self.preferred = [
            (weight, counts.selected(sets.select(term.selector)), term.topology_key)
            for weight, term in rules.preferred
            if weight
        ]
        self.keys = tuple(dict.fromkeys(term.topology_key for term in rules.affinity))
        """The topology keys of the required affinities."""
        self.partners: Counted | None = None
        """The pods that match all of the required affinities."""
        self.together: Selection | None = None
        """What selects them."""
        self.is_partner = False
        """Does the pod match them itself?"""
        if rules.affinity:
            selectors = dict.fromkeys(term.selector for term in rules.affinity)
            self.together = sets.select(*selectors)
            self.partners = counts.selected(self.together)
            self.is_partner = self.together in label_set.selections


class PodAffinity:
    """Judges nodes by the pods that run near them."""

    def __init__(self, counts: PodCounts, labels: TopologyLabels) -> None:
        self._counts = counts
        self._labels = labels

    def refuse(
        self, rules: AffinityRules, repelling: list[Holders], column: _Column, with_held: bool
    ) -> None:
        """Note in the column the open nodes that a required term rules out."""
        if rules.partners is not None:
            _note(
                column, ~self.near_partners(rules, rules.partners, with_held), NodeRefusal.AFFINITY
            )
        for _, counted, key in rules.anti:
            if counted.running or (with_held and counted.held):
                _note(column, self._near(counted, key, with_held), NodeRefusal.ANTI_AFFINITY)
        for holders in repelling:
            near = self._near(holders.counted, holders.key, with_held)
            _note(column, near, NodeRefusal.OTHERS_ANTI_AFFINITY)

    def _near(self, counted: Counted, key: str, with_held: bool) -> NDArray[np.bool_]:
        """The nodes in whose domain such pods are."""
        domains = self._labels.domains(key)
        there = counted.by_domain(domains, with_held) > 0
        there[0] = False
        found: NDArray[np.bool_] = there.take(domains.of_slot)
        return found

    def near_partners(
        self, rules: AffinityRules, partners: Counted, with_held: bool
    ) -> NDArray[np.bool_]:
        """The nodes on which all required affinities are met."""
        all_domains = [self._labels.domains(key) for key in rules.keys]
        first = rules.is_partner and not any(
            self.has_any(partners, domains, with_held) for domains in all_domains
        )
        met = np.ones(len(all_domains[0].of_slot), dtype=bool)
        for domains in all_domains:
            there = partners.by_domain(domains, with_held) > 0
            there[:] |= first
            there[0] = False
            met &= there.take(domains.of_slot)
        return met

    @staticmethod
    def has_any(partners: Counted, domains: Domains, with_held: bool) -> bool:
        """Is there a partner in any domain at all?"""
        return bool(partners.by_domain(domains, with_held)[1:].any())

    def prefers(self, rules: AffinityRules, preferring: list[Holders]) -> bool:
        """Do running pods make any node better or worse for the pod?"""
        about = (counted for _, counted, _ in rules.preferred)
        return bool(preferring) or any(counted.running for counted in about)

    def points(self, rules: AffinityRules, preferring: list[Holders], count: int) -> _Column:
        """What kube-scheduler scores each node, before it is normalised."""
        points = np.zeros(count, dtype=np.int64)
        about = [(weight, counted, key) for weight, counted, key in rules.preferred]
        about += [(1, holders.counted, holders.key) for holders in preferring]
        for weight, counted, key in about:
            if counted.running:
                domains = self._labels.domains(key)
                sums = weight * counted.by_domain(domains, with_held=False)
                sums[0] = 0
                points += sums.take(domains.of_slot)
        return points


def _note(column: _Column, refused: NDArray[np.bool_], code: int) -> None:
    """Note a refusal on nodes that are open so far."""
    np.putmask(column, refused & (column == 0), code)
