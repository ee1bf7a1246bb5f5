"""Pods, what they ask for and where they may run, and the disruption budgets that protect them.

Values, like all of `model`: frozen, comparable, without behaviour beyond reading themselves. A
dialect builds them from Kubernetes objects; the engine never asks which dialect that was.
"""

from dataclasses import dataclass, field

from aliquot.engine.model.checks import check, shown, sorted_amounts
from aliquot.engine.model.gpu import GpuAsk
from aliquot.engine.model.node import ANY_NODE, NodeConstraints
from aliquot.engine.model.pod_rules import NO_RULES, PodRules
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.selector import Requirement
from aliquot.errors import ArgumentError

GPU_MEMORY = "nos.nebuly.ai/gpu-memory"
"""GB of GPU memory: charged to quotas, but not part of what a pod takes on a node."""


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
        requests = sorted_amounts(self.requests, "shape: requests", zeros=False)
        object.__setattr__(self, "requests", requests)
        check(self.constraints, NodeConstraints, "shape: constraints")
        if self.gpu is not None:
            check(self.gpu, GpuAsk, "shape: gpu")
        object.__setattr__(self, "charges", _sorted_charges(self.charges))
        object.__setattr__(
            self, "_hash", hash((requests, self.constraints, self.charges, self.gpu))
        )

    def __hash__(self) -> int:
        return self._hash


def _sorted_charges(given: object) -> tuple[tuple[str, Amounts], ...]:
    """Charges by node class, the amounts of each sorted."""
    if not isinstance(given, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in given):
        raise ArgumentError(f"shape: charges: {shown(given)} is not a tuple of class and amounts")
    return tuple(
        (name, sorted_amounts(charge, f"shape: charges of {shown(name)}")) for name, charge in given
    )


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
    unsupported: str = ""
    """What it asks for that is not looked at, in words; such a pod waits, and is never bound."""
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
    grace_period: int = 30 * 1_000_000_000
    """How long it may take to terminate once it is evicted."""
    gone_by: int | None = None
    """The end of its grace period, once it is terminating."""
    endless: bool = False
    """Does its owner keep it running for good, as a Deployment does? A Job does not."""
    rules: PodRules = NO_RULES
    """What it asks of other pods, host ports and volumes."""
    images: tuple[str, ...] = ()
    """The image of each of its containers, with a tag; nodes that have them are preferred."""

    @property
    def path(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def blocked(self) -> bool:
        """Can it not start, whatever room and right there is?"""
        return self.gated or self.terminating or bool(self.unsupported)

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


def check_pod(pod: Pod) -> None:
    """Refuse a pod with fields that are not what the books count on.

    Every pod of a watch passes here, so the common case is one expression.
    """
    if (
        isinstance(pod, Pod)
        and type(pod.uid) is str
        and type(pod.namespace) is str
        and type(pod.name) is str
        and isinstance(pod.shape, Shape)
        and isinstance(pod.priority, int)
        and isinstance(pod.created, int)
        and isinstance(pod.started, int)
        and (pod.node is None or type(pod.node) is str)
        and (pod.nominated is None or type(pod.nominated) is str)
        and (pod.quota is None or type(pod.quota) is str)
        and (pod.gang is None or type(pod.gang) is str)
        and type(pod.labels) is tuple
        and type(pod.devices) is tuple
        and type(pod.images) is tuple
        and type(pod.rules) is PodRules
        and (pod.expected_duration is None or isinstance(pod.expected_duration, int))
        and (pod.gone_by is None or isinstance(pod.gone_by, int))
    ):
        return
    check(pod, Pod, "pod")
    raise ArgumentError(f"pod {shown(pod)} makes no sense")
