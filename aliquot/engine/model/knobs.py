"""Knobs: the configuration of the engine, with defaults; see docs/reference/configuration.md."""

from dataclasses import dataclass, field
from typing import Literal

from aliquot.engine.model.system_namespaces import SystemNamespaces

Borrow = Literal["unusedMin", "freeCapacity"]
"""What quotas above min may use: idle min of others, or also what no quota is guaranteed."""
DevicePlacement = Literal[
    "NodeCompactGPULowLoad", "CompactFirst", "LowLoadFirst", "leastFragmentation"
]
ScoreMode = Literal["pack", "spread"]

SECOND = 1_000_000_000
"""Times are whole nanoseconds."""


@dataclass(frozen=True, slots=True)
class CapacityKnobs:
    """Of the `capacity` policy."""

    borrow: Borrow = "unusedMin"


@dataclass(frozen=True, slots=True)
class FairKnobs:
    """Of the `fair` policy."""

    borrow: Borrow = "unusedMin"
    over_quota_order: tuple[str, ...] = ("creation", "request", "name")
    """The order in which pods count as in-quota: words of `importance.Order`."""


@dataclass(frozen=True, slots=True)
class HierarchyKnobs:
    """Of the `hierarchy` policy."""

    revoke_after: int = 120 * SECOND
    recycle: Literal["demand", "always"] = "demand"
    scale_min: bool = True
    surplus: bool = True
    parent_pods: Literal["refuse", "implicitChild"] = "refuse"


@dataclass(frozen=True, slots=True)
class QueuesKnobs:
    """Of the `queues` policy."""

    priority_bands: bool = False
    """Whether claims of higher priority come before the turns of queues and namespaces."""


@dataclass(frozen=True, slots=True)
class GpuKnobs:
    """Of the choice of GPU devices."""

    placement: DevicePlacement = "NodeCompactGPULowLoad"


@dataclass(frozen=True, slots=True)
class EvictionKnobs:
    """Of evictions and nominations."""

    min_runtime: int = 0
    quotaless: Literal["protected", "lowest"] = "protected"
    on_quota_lowered: Literal["keep", "evict"] = "keep"
    hold_for: int = 300 * SECOND
    node_lost_after: int = 300 * SECOND
    """How long a node may be not ready before guarantees shrink by what it had."""
    max_per_minute: int = 0
    """How many pods may be evicted by choice in a minute; 0: no brake."""
    max_share: int = 0
    """How many of the running pods may be, in percent; 0: no brake."""
    delete_after: int = 60 * SECOND
    """How long disruption budgets may refuse the eviction for an owed claim; 0: for ever."""
    max_grace: int = 3600 * SECOND
    """The longest grace period of a victim."""
    patience: int = 0
    """How long a claim waits before victims are sought for it."""


@dataclass(frozen=True, slots=True)
class PlacementWeights:
    """How much each preference counts beside the others, 0 to 100; kube-scheduler's by default."""

    pod_affinity: int = 2
    topology_spread: int = 2
    node_affinity: int = 2
    taints: int = 3
    image_locality: int = 1


@dataclass(frozen=True, slots=True)
class DefaultConstraint:
    """Topology spread of pods that state none.

    Which pods are counted follows from other objects: the mirror gives each pod its rules, the
    engine only sees those.
    """

    topology_key: str
    max_skew: int
    required: bool


@dataclass(frozen=True, slots=True)
class PlacementKnobs:
    """Of the choice of nodes."""

    score: ScoreMode = "pack"
    reserve_after: int = 60 * SECOND
    """How long a claim that others have passed waits before room and right are reserved for it."""
    reserve_share: int = 10
    """The percentage of any resource that all reservations but the first may keep, together."""
    volume_bind_timeout: int = 600 * SECOND
    """How long the volumes of a pod may take to be bound before its Bind is given up."""
    weights: PlacementWeights = field(default_factory=PlacementWeights)
    default_constraints: tuple[DefaultConstraint, ...] = ()
    topology: tuple[str, ...] = ()
    """Labels of nodes by which they are near each other, from narrow to wide. The mirror gives each
    gang the levels that it asks for; the engine only sees those."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """All of them, with their defaults."""

    capacity: CapacityKnobs = field(default_factory=CapacityKnobs)
    fair: FairKnobs = field(default_factory=FairKnobs)
    hierarchy: HierarchyKnobs = field(default_factory=HierarchyKnobs)
    queues: QueuesKnobs = field(default_factory=QueuesKnobs)
    gpu: GpuKnobs = field(default_factory=GpuKnobs)
    eviction: EvictionKnobs = field(default_factory=EvictionKnobs)
    placement: PlacementKnobs = field(default_factory=PlacementKnobs)
    system_namespaces: SystemNamespaces = field(default_factory=SystemNamespaces)
