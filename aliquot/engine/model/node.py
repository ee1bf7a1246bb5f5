"""Nodes, and what keeps pods off them: selectors, affinity, taints and tolerations.

Values only: whether a pod may run on a node is decided in `placement.constraints`.
"""

from dataclasses import dataclass
from typing import Literal

from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.selector import Term

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node unless they tolerate it."""

    key: str
    value: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Toleration:
    """What lets a pod past a taint. An empty key with Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeConstraints:
    """Where a pod may run, apart from what it asks for; and where it would rather."""

    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[Term, ...] | None = None
    preferred: tuple[tuple[int, Term], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


ANY_NODE = NodeConstraints()
"""No constraints: every node without taints."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it has for pods, its labels and taints.

    A cordoned or not-ready node carries the taint that Kubernetes gives it. Nodes of one
    `node_class` count a pod alike against quotas (the same GPU model).
    """

    name: str
    allocatable: Amounts
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    node_class: str = ""
