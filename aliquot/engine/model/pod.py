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
"""GB of GPU memory: charged to quotas, but not part of what a pod takes on a node."""

CRITICAL_PRIORITY = 2_000_000_000
"""The priority from which on a pod is system-critical: that of Kubernetes' own PriorityClass
`system-cluster-critical`, twice the highest that users may give."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the pods of one workload have in common: their requests and node constraints.

    `requests` is what a node must have free. The quota is charged the same, unless `charges` says
    otherwise: by node class, and under "" for pending pods and for every class that it does not
    name. `gpu` is the request of single devices. The hash is computed once: shapes are dict keys on
    the hot path.
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
    """A pod that is pending (no node) or bound (a node). A finished pod is removed by `PodGone`.

    `created` is its age; only the order counts. `started` is when it began to run. `quota` is the
    quota it names; a pod that names none belongs to the quota of its namespace. `nominated` is the
    node held for it. A pod that is not `preemptible` is never a victim, and starts only within its
    quota's min. `gang` (`namespace/name`) is the gang it starts with, `task` its task there.

    When it ends is known only as far as its objects say so: `expected_duration` counts from its
    start, `gone_by` is when a terminating pod should be gone at the latest. All times are
    nanoseconds on the clock that the cycles are told.
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
    """The GPU devices chosen for it, once it is bound."""
    expected_duration: int | None = None
    """How long it runs at most, or is expected to; None if nothing says so."""
    gone_by: int | None = None
    """The end of its grace period, once it is terminating."""
    endless: bool = False
    """Does its owner keep it running for good, as a Deployment does? A Job does not."""

    @property
    def path(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def expected_end(self) -> int | None:
        """When a bound pod ends, as far as that is known."""
        if self.terminating and self.gone_by is not None:
            return self.gone_by
        if self.node is None or self.expected_duration is None:
            return None
        return self.started + self.expected_duration

    @property
    def may_end(self) -> bool:
        """Can it end without being evicted? Only such pods are worth waiting for."""
        return self.terminating or self.expected_duration is not None or not self.endless


@dataclass(frozen=True, slots=True)
class Budget:
    """A disruption budget: how many more of the pods it selects may be evicted.

    Evicting a pod in `disrupted` (by name) costs nothing: it is counted already.
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
