"""Events: the engine's only input, besides the time of a cycle.

An event states how an object is now, not how it changed, so that applying one twice is harmless and
a missed one is made good by the next.
"""

from dataclasses import dataclass
from typing import get_args

from aliquot.engine.model.checks import check, shown
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.gpu import Device, GpuQuota
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Budget, Pod, check_pod
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.tree import Tree
from aliquot.engine.model.volumes import StorageKind, StorageObject, is_sound
from aliquot.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A node exists, with this content."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node no longer exists; pods bound to it are lost and will be evicted."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeImagesSet:
    """A node has these container images, each with its size in bytes, and no others."""

    node: str
    images: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """A quota exists, with this content."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class QuotaGone:
    """A quota no longer exists; its pods keep running, uncharged by it."""

    name: str


@dataclass(frozen=True, slots=True)
class TreeSet:
    """A tree of quotas has these nodes of its own."""

    tree: Tree


@dataclass(frozen=True, slots=True)
class TreeGone:
    """A tree has no nodes of its own any more: there is nothing for its quotas to share."""

    name: str


@dataclass(frozen=True, slots=True)
class PodSet:
    """A pod exists, with this content: pending, or bound to its node."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod has finished or was deleted."""

    uid: str


@dataclass(frozen=True, slots=True)
class GangSet:
    """A gang exists, with this content; its pods name it."""

    gang: Gang


@dataclass(frozen=True, slots=True)
class GangGone:
    """A gang (`namespace/name`) no longer exists; each of its pods is a claim of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class WeightSet:
    """The weight of a namespace among the namespaces of its queue; 1 unless set."""

    namespace: str
    weight: int


@dataclass(frozen=True, slots=True)
class NamespaceSet:
    """A namespace has these labels, by which pods select others' namespaces."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace no longer exists."""

    namespace: str


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A GPU exists, with this content."""

    device: Device


@dataclass(frozen=True, slots=True)
class DeviceGone:
    """A GPU no longer exists."""

    name: str


@dataclass(frozen=True, slots=True)
class GpuQuotaSet:
    """A namespace has this quota of GPUs."""

    quota: GpuQuota


@dataclass(frozen=True, slots=True)
class GpuQuotaGone:
    """A namespace no longer has a quota of GPUs."""

    namespace: str


@dataclass(frozen=True, slots=True)
class StorageSet:
    """A volume, a claim on one, a storage class or what else decides about volumes exists so."""

    found: StorageObject


@dataclass(frozen=True, slots=True)
class StorageGone:
    """Such an object no longer exists."""

    kind: StorageKind
    name: str
    """`namespace/name` of what is in a namespace."""


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """A disruption budget exists, with this content."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A disruption budget (`namespace/name`) no longer exists."""

    path: str


@dataclass(frozen=True, slots=True)
class EvictionsPaused:
    """No pod is to be evicted by choice, until this time if there is one."""

    words: str = ""
    """Who has paused evictions, since when and why, for messages."""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class EvictionsResumed:
    """Pods may be evicted again."""


@dataclass(frozen=True, slots=True)
class BindFailed:
    """A Bind could not be carried out; the pod is pending again."""

    uid: str


@dataclass(frozen=True, slots=True)
class EvictFailed:
    """An Evict could not be carried out; the claim it was for needs another victim."""

    uid: str


Event = (
    NodeSet
    | NodeGone
    | NodeImagesSet
    | QuotaSet
    | QuotaGone
    | TreeSet
    | TreeGone
    | PodSet
    | PodGone
    | GangSet
    | GangGone
    | WeightSet
    | NamespaceSet
    | NamespaceGone
    | DeviceSet
    | DeviceGone
    | GpuQuotaSet
    | GpuQuotaGone
    | StorageSet
    | StorageGone
    | BudgetSet
    | BudgetGone
    | EvictionsPaused
    | EvictionsResumed
    | BindFailed
    | EvictFailed
)

_EVENTS = get_args(Event)


def check_event(event: object) -> None:
    """Refuse what is no event, or has content that is not what its type says."""
    if type(event) is PodSet:
        check_pod(event.pod)
    elif _is_sound(event):
        return
    elif isinstance(event, _EVENTS):
        check(event, type(event), type(event).__name__)
    else:
        raise ArgumentError(f"{shown(event)} is not an event, such as NodeSet, QuotaSet or PodSet")


def _is_sound(event: object) -> bool:
    """Is it one of which there are many, or which hold much, with content as it should be?"""
    if type(event) is StorageSet:
        return is_sound(event.found)
    return (
        type(event) is NodeImagesSet
        and type(event.node) is str
        and type(event.images) is tuple
        and all(
            type(each) is tuple and len(each) == 2 and type(each[0]) is str and type(each[1]) is int
            for each in event.images
        )
    )
