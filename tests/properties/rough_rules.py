"""Rules about pods in a random cluster: who keeps whom away, who runs near whom, host ports.

Pods of one workload have the same rules. Labels of pods, and the labels of nodes that rules go by,
change while pods run: `zone`, and `name`, which every node has for itself.
"""

from dataclasses import replace
from random import Random

from aliquot.engine import (
    AffinityTerm,
    HostPort,
    Node,
    Pod,
    PodRules,
    PodSelector,
    Requirement,
    SpreadConstraint,
)
from aliquot.engine.model.pod_rules import NO_RULES
from tools.streams.profile import NAMESPACES, often

_APPS = "uvw"
_KEYS = ("zone", "name")


class RoughRules:
    """Draws the rules of one cluster, and how labels change."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._kinds = [self._kind() for _ in range(rng.randint(1, 4))]

    def of_workload(self) -> PodRules:
        """The rules of the pods of one workload; half of the workloads have none."""
        return self.rng.choice(self._kinds) if often(self.rng, 0.5) else NO_RULES

    def relabelled_pod(self, pod: Pod) -> Pod:
        """The pod, as one of another app."""
        return replace(pod, labels=(("app", self.rng.choice(_APPS)),))

    def relabelled_node(self, node: Node) -> Node:
        """The node in another zone, or in none."""
        others = tuple(each for each in node.labels if each[0] != "zone")
        zone = self.rng.choice(("x", "y", "z", None))
        return replace(node, labels=others if zone is None else (("zone", zone), *others))

    def _kind(self) -> PodRules:
        rng = self.rng
        return rng.choice(
            (
                PodRules(anti_affinity=(self._term(),)),
                PodRules(anti_affinity=(self._term(),), spread=(self._spread(),)),
                PodRules(affinity=(self._term(),)),
                PodRules(affinity=(self._term(),), anti_affinity=(self._term(),)),
                PodRules(spread=(self._spread(),)),
                PodRules(spread=(self._spread("zone"), self._spread("name"))),
                PodRules(ports=(self._port(),)),
                PodRules(ports=(self._port(),), spread=(self._spread(),)),
            )
        )

    def _selector(self) -> PodSelector:
        rng = self.rng
        apps = tuple(rng.sample(_APPS, rng.randint(1, 2)))
        labels = rng.choice(((), (Requirement("app", "In", apps),)))
        everywhere = () if often(rng, 0.5) else None
        return PodSelector(tuple(rng.sample(NAMESPACES, 2)), everywhere, labels)

    def _term(self) -> AffinityTerm:
        return AffinityTerm(self._selector(), self.rng.choice(_KEYS))

    def _spread(self, key: str | None = None) -> SpreadConstraint:
        rng = self.rng
        return SpreadConstraint(
            self._selector(),
            key or rng.choice(_KEYS),
            rng.randint(1, 3),
            rng.choice((1, 1, 2, 3)),
            honors_affinity=often(rng, 0.7),
            honors_taints=often(rng, 0.3),
            counts_itself=often(rng, 0.8),
        )

    def _port(self) -> HostPort:
        rng = self.rng
        ip = rng.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2"))
        return HostPort(rng.choice((80, 443)), rng.choice(("TCP", "TCP", "UDP")), ip)
