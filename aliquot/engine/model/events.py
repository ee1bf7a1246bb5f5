"""What happens to a cluster: the engine's only input, besides the time of a cycle.

Each event states how a thing is now, not how it changed, so that replaying one is harmless and a
missed one is made good by the next.
"""

from dataclasses import dataclass

from aliquot.engine.model.gang import Gang
from aliquot.engine.model.gpu import Device, GpuQuota
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Budget, Pod
from aliquot.engine.model.quota import Quota


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A node is there, like this."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node is no longer there; its pods are lost."""

    name: str


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """A quota is there, like this."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class QuotaGone:
    """A quota is no longer there; its pods run on without it."""

    name: str


@dataclass(frozen=True, slots=True)
class PodSet:
    """A pod is there, like this: waiting, or bound to its node."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod has finished or was deleted."""

    uid: str


@dataclass(frozen=True, slots=True)
class GangSet:
    """A gang is there, like this; its pods name it."""

    gang: Gang


@dataclass(frozen=True, slots=True)
class GangGone:
    """A gang (`namespace/name`) is no longer there; its pods are on their own."""

    name: str


@dataclass(frozen=True, slots=True)
class WeightSet:
    """A namespace has this weight among those of its queue; without a word, it is 1."""

    namespace: str
    weight: int


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A GPU is there, like this."""

    device: Device


@dataclass(frozen=True, slots=True)
class DeviceGone:
    """A GPU is no longer there."""

    name: str


@dataclass(frozen=True, slots=True)
class GpuQuotaSet:
    """What a namespace may use of GPUs is this."""

    quota: GpuQuota


@dataclass(frozen=True, slots=True)
class GpuQuotaGone:
    """A namespace may use what it likes of GPUs."""

    namespace: str


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """A disruption budget is there, like this."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A disruption budget (`namespace/name`) is no longer there."""

    path: str


@dataclass(frozen=True, slots=True)
class BindFailed:
    """A Bind could not be carried out; the pod waits again."""

    uid: str


@dataclass(frozen=True, slots=True)
class EvictFailed:
    """An Evict could not be carried out; whoever waited for it looks for somebody else."""

    uid: str


Event = (
    NodeSet
    | NodeGone
    | QuotaSet
    | QuotaGone
    | PodSet
    | PodGone
    | GangSet
    | GangGone
    | WeightSet
    | DeviceSet
    | DeviceGone
    | GpuQuotaSet
    | GpuQuotaGone
    | BudgetSet
    | BudgetGone
    | BindFailed
    | EvictFailed
)
