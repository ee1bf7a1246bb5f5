"""What the engine knows of a cluster: nodes, pods and quotas, whatever dialect they came from.

These are values: frozen, comparable, without behaviour beyond reading themselves. A dialect builds
them from Kubernetes objects; from here on nobody asks where they came from.
"""

from dataclasses import dataclass, field
from typing import Literal

from aliquot.engine.model.gpu import GpuAsk

Amounts = tuple[tuple[str, int], ...]
"""Resource and amount (see `quantity`), sorted by resource. In requests, zeros are left out."""

GPU_MEMORY = "nos.nebuly.ai/gpu-memory"
"""GB of GPUs: charged to quotas, but no room that a pod takes on a node."""

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a node selector term: a label (or field), an operator, values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements that must all hold. A term without any matches nothing, as in Kubernetes."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Shape:
    """What many pods have in common: what they ask for, and where they may run.

    `requests` is the room that a node must have. Quotas are charged the same, unless `charges` says
    otherwise: by node class, and under "" for every class that it does not name and for pods that
    wait. `gpu` is what it asks for of single devices.
    """

    requests: Amounts
    where: NodeConstraints = NodeConstraints()
    charges: tuple[tuple[str, Amounts], ...] = ()
    gpu: GpuAsk | None = None
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requests, self.where, self.charges, self.gpu)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that waits (no node) or runs (a node). A finished pod is no longer there.

    `created` orders by age; only its order counts. `started` is when it began to run. `quota` names
    a quota by hand; without it the pod belongs to the quota of its namespace. `nominated` is a node
    that is held for it. One that is not `preemptible` is nobody's victim, and lives within min.
    `gang` is the gang (`namespace/name`) that it starts with, and `task` its part in that.
    """

    uid: str
    namespace: str
    name: str
    shape: Shape
    priority: int = 0
    created: int = 0
    node: str | None = None
    quota: str | None = None
    nominated: str | None = None
    gated: bool = False
    terminating: bool = False
    preempts: bool = True
    preemptible: bool = True
    started: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    gang: str | None = None
    task: str = ""
    devices: tuple[str, ...] = ()
    """The devices that were chosen for it, once it is bound."""

    @property
    def path(self) -> str:
        """`namespace/name`, the way people read it."""
        return f"{self.namespace}/{self.name}"


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


@dataclass(frozen=True, slots=True)
class Quota:
    """A node of the quota tree. A resource missing from `min` is 0, from `max` unlimited."""

    name: str
    min: Amounts = ()
    max: Amounts = ()
    weight: Amounts = ()
    parent: str | None = None
    lend: bool = True
    namespaces: frozenset[str] = field(default_factory=frozenset)
    group: str = ""
    """Its lending group: what is idle of min is lent inside it only. Without one, to everybody."""
    is_parent: bool = False
    """Does it hold no pods of its own, but other quotas?"""
    outside: bool = False
    """Does it stand outside the shares? What it uses is not there for the others to share."""
    fallback: bool = False
    """Does it take the pods that belong nowhere else?"""
    say: int = 0
    """Its weight in every resource of which `weight` says nothing; 0 where it has none."""
    deserved: Amounts = ()
    """Its share, where somebody fixed it instead of leaving it to weights."""
    reclaimable: bool = True
    """Can others take back what it uses beyond its share?"""
    closed: bool = False
    """Does it let nobody start any more?"""
    priority: int = 0
    """Whose turn comes first, whatever the shares."""


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together: at least `min_member` of them, or nobody.

    `min_tasks` are the fewest of each task that will do. Until its pods are there, a gang asks for
    `min_resources`. `quota` is the quota of the whole, `priority` that of the whole, if it has one:
    its pods come with at least that. `done` says how many of each task have ended well, which count
    as if they ran; `failed` how many have not.
    """

    name: str
    min_member: int = 1
    min_tasks: tuple[tuple[str, int], ...] = ()
    min_resources: Amounts = ()
    quota: str | None = None
    priority: int | None = None
    created: int = 0
    done: tuple[tuple[str, int], ...] = ()
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pods of a kind may be evicted: a disruption budget.

    Pods in `disrupted` (by name) are on their way out already and cost nothing.
    """

    namespace: str
    name: str
    allowed: int
    selector: tuple[Requirement, ...]
    disrupted: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def add_amounts(*amounts: Amounts) -> Amounts:
    """Add up, resource by resource."""
    total: dict[str, int] = {}
    for part in amounts:
        for resource, value in part:
            total[resource] = total.get(resource, 0) + value
    return tuple(sorted(total.items()))
