"""Pods, what they ask for and where they may run, and the disruption budgets that protect them.

Values, like all of `model`: frozen, comparable, without behaviour beyond reading themselves. A
dialect builds them from Kubernetes objects; the engine never asks which dialect that was.
"""

from dataclasses import dataclass, field

from aliquot.engine.model.gpu import GpuAsk
from aliquot.engine.model.node import ANY_NODE, NodeConstraints
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.selector import Requirement

GPU_MEMORY = "nos.nebuly.ai/gpu-memory"
"""GB of GPUs: charged to quotas, but no room that a pod takes on a node."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What many pods have in common: what they ask for, and where they may run.

    `requests` is the room that a node must have. Quotas are charged the same, unless `charges` says
    otherwise: by node class, and under "" for every class that it does not name and for pods that
    wait. `gpu` is what it asks for of single devices.
    """

    requests: Amounts
    constraints: NodeConstraints = ANY_NODE
    charges: tuple[tuple[str, Amounts], ...] = ()
    gpu: GpuAsk | None = None
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.requests, self.constraints, self.charges, self.gpu))
        )

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
