"""Topology spread of pods that state none, by the configuration's `placement.defaultConstraints`.

Which pods such a constraint counts is kube-scheduler's default selector: those that every Service
selects that selects the pod, and that its owner selects. A pod without either has no constraint.
Pods alike share their rules, and pods whose rules mean the same have equal ones. Where no default
constraints are configured, the mirror has none of this.
"""

from collections.abc import Mapping
from dataclasses import replace

from aliquot.dialects.core.label_selectors import canonical, selection
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.pod_rules import default_spread
from aliquot.engine import NO_RULES, DefaultConstraint, PodRules, Requirement, requirement_matches
from aliquot.mirror.pod_record import PodRecord

SERVICE = "Service"
OWNERS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The owners that say which pods are alike. The pods of a simulated Deployment have no ReplicaSet:
its own selector stands for that; a cluster's Deployments own no pods, and are not watched."""
_MOST_KNOWN = 20_000
"""Results kept: far more than a cluster has templates; beyond it, the cache starts again empty."""

_Selected = tuple[Requirement, ...]
_Alike = tuple[str, tuple[tuple[str, str], ...], Key | None]
"""What the spread of a pod depends on: its namespace, its labels and its owner."""


class DefaultSpread:
    """The selectors of Services and owners, and the rules of pods that follow from them."""

    def __init__(self, constraints: tuple[DefaultConstraint, ...]) -> None:
        self._constraints = constraints
        self._services: dict[str, dict[str, _Selected]] = {}
        """By namespace and name; without those that select no pods."""
        self._owners: dict[Key, _Selected] = {}
        self._known: dict[_Alike, PodRules] = {}
        """Rules that are the default spread and nothing else."""
        self._shared: dict[PodRules, PodRules] = {}
        self._together: dict[tuple[PodRules, PodRules], PodRules] = {}
        """A pod's own rules and the default spread, together."""

    def put(self, key: Key, manifest: Manifest | None) -> bool:
        """A Service or an owner is like this now, or gone; does it select other pods now?"""
        kind, namespace, name = key
        found = None if manifest is None else selection(manifest)
        if kind == SERVICE:
            services = self._services.setdefault(namespace, {})
            before = services.pop(name, None)
            if found is not None:
                services[name] = found
            if not services:
                del self._services[namespace]
        else:
            before = self._owners.pop(key, None)
            if found is not None:
                self._owners[key] = found
        if before == found:
            return False
        self._clear()
        return True

    def rules(self, record: PodRecord) -> PodRules:
        """The rules of a pod: its own, with the default spread if it states none."""
        own, pod = record.own_rules, record.pod
        owner = record.owner if record.owner in self._owners else None
        if own.spread or (owner is None and pod.namespace not in self._services):
            return own
        alike = pod.namespace, pod.labels, owner
        spread = self._known.get(alike)
        if spread is None:
            if len(self._known) >= _MOST_KNOWN:
                self._clear()
            spread = self._spread(pod.namespace, dict(pod.labels), owner)
            self._known[alike] = spread = self._shared.setdefault(spread, spread)
        if spread is NO_RULES:
            return own
        return spread if own is NO_RULES else self._with(own, spread)

    def _spread(self, namespace: str, labels: Mapping[str, str], owner: Key | None) -> PodRules:
        found: list[Requirement] = []
        for selected in self._services.get(namespace, {}).values():
            if all(requirement_matches(each, labels) for each in selected):
                found += selected
        if owner is not None:
            found += self._owners[owner]
        if not found:
            return NO_RULES
        selector = canonical(found)
        return PodRules(spread=default_spread(self._constraints, namespace, selector, labels))

    def _with(self, own: PodRules, spread: PodRules) -> PodRules:
        """Both together; what a pod mounts is seldom the same for two, and is not kept."""
        if own.volumes:
            return replace(own, spread=spread.spread)
        together = self._together.get((own, spread))
        if together is None:
            if len(self._together) >= _MOST_KNOWN:
                self._together.clear()
            together = self._together[own, spread] = replace(own, spread=spread.spread)
        return together

    def _clear(self) -> None:
        for each in (self._known, self._shared, self._together):
            each.clear()
