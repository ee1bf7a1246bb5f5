"""Nodes, and what keeps pods off them: selectors, affinity, taints and tolerations.

Values only: whether a pod may run on a node is decided in `placement.constraints`.
"""

from dataclasses import dataclass, field
from typing import Literal

from aliquot.engine.model.checks import sorted_amounts
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.selector import Selectors, Term

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
"""The key of the taint of cordoned nodes."""

CLOSING_TAINTS = frozenset(
    {
        *("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"),
        *(UNSCHEDULABLE_TAINT, "node.kubernetes.io/out-of-service"),
        *("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"),
    }
)
"""The keys of taints on nodes that take no new pods: not ready, cordoned, about to be removed."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint: keeps pods off a node unless they tolerate it."""

    key: str
    value: str
    effect: Effect
    implied: bool = False
    """Is it not written on the node, but follows from its being cordoned or not ready?"""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. An empty key with Exists tolerates every taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeConstraints:
    """The nodes that a pod may run on, and those it prefers, apart from its requests.

    The hash is computed once: there may be thousands of terms, and each column is found by it.
    """

    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[Term, ...] | None = None
    preferred: tuple[tuple[int, Term], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    within: Selectors = ()
    """The nodes of its quota's tree: one of these must select a node, unless there are none."""
    beyond: Selectors = ()
    """The nodes that trees have for themselves: none of these may select a node."""
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __hash__(self) -> int:
        if not self._hash:
            reach = (self.within, self.beyond)
            parts = (self.selector, self.required, self.preferred, self.tolerations, reach)
            object.__setattr__(self, "_hash", hash(parts) or 1)
        return self._hash


ANY_NODE = NodeConstraints()
"""No constraints: the pod may run on every node without taints."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its allocatable resources, labels and taints.

    A cordoned or not-ready node also carries the taint that Kubernetes gives it. On all nodes of
    one `charge_class` a pod is charged the same to its quota: the `node_class` says what its cards
    count (their GB), and `models` of which model they are.
    """

    name: str
    allocatable: Amounts
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    node_class: str = ""
    ready: bool = True
    not_ready_since: int | None = None
    """When it ceased to be ready, if that is known."""
    deleted: bool = False
    """Is it being deleted? Then no pod starts on it, whatever it tolerates."""
    models: tuple[tuple[str, str], ...] = ()
    """By resource of cards, the resource that its cards are of their model: what pods take of the
    first on this node, their quotas are charged of the second as well."""

    @property
    def takes_pods(self) -> bool:
        """May new pods start on it? If not, it adds to what is lent only what runs on it."""
        return not self.deleted and not any(
            taint.key in CLOSING_TAINTS and taint.effect != "PreferNoSchedule"
            for taint in self.taints
        )

    @property
    def charge_class(self) -> str:
        """The class of nodes on which a pod is charged the same as on this one."""
        if not self.models:
            return self.node_class
        return " ".join((self.node_class, *(model for _, model in self.models)))

    def __post_init__(self) -> None:
        found = sorted_amounts(self.allocatable, f"node {self.name}: allocatable")
        object.__setattr__(self, "allocatable", found)
