"""Pod rules: which other pods a pod is to be near or far from, its host ports, its volumes.

Values, with the meaning Kubernetes gives them. A dialect resolves what depends on the pod itself
(its namespace, the values of `matchLabelKeys`), so that equal rules mean the same for every pod.
"""

from dataclasses import dataclass, field

from aliquot.engine.model.selector import Requirement
from aliquot.engine.model.volumes import VolumeUse


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods a rule is about: of these namespaces, with these labels.

    `namespaces` are named; `namespace_selector` adds those whose labels it matches, all of them if
    it is empty, none if it is None. `labels` must all hold: empty matches every pod, None no pod.
    """

    namespaces: tuple[str, ...] = ()
    namespace_selector: tuple[Requirement, ...] | None = None
    labels: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods near which a pod is to run, or not to run: on nodes with the same value of a label."""

    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How evenly the selected pods are to be spread over the values of a node label.

    A constraint that is not `required` is a preference. `honors_affinity`: only nodes that the
    pod's node selector and affinity admit count; `honors_taints`: only those whose taints it
    tolerates.
    `counts_itself`: is the pod one of those that are spread?
    """

    selector: PodSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    required: bool = True
    honors_affinity: bool = True
    honors_taints: bool = False
    counts_itself: bool = True


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node: of one of its addresses, or of all of them (`0.0.0.0`)."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class PodRules:
    """All rules of one pod. The hash is computed once: rules are dict keys on the hot path.

    `preferred` are affinities with a weight, below zero for anti-affinities.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[int, AffinityTerm], ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    ports: tuple[HostPort, ...] = ()
    volumes: tuple[VolumeUse, ...] = ()
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __hash__(self) -> int:
        if not self._hash:
            near = self.affinity, self.anti_affinity, self.preferred, self.spread
            object.__setattr__(self, "_hash", hash((*near, self.ports, self.volumes)) or 1)
        return self._hash


NO_RULES = PodRules()
"""The rules of most pods."""
