"""Volumes: what pods mount, and what decides where it can be mounted.

Values only, with the meaning Kubernetes gives them: what is bound, reserved and chosen is in
`books.volumes`, which nodes that leaves is decided in `placement.volumes`. A dialect knows which
CSI driver has replaced which of Kubernetes' own plugins, and what that does to a volume.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin

from aliquot.engine.model.selector import Requirement, Term

UNLIMITED = 2**62
"""How many volumes of a driver a node takes that states no limit."""


@dataclass(frozen=True, slots=True)
class CsiVolume:
    """A volume as its CSI driver counts it: volumes with one handle are the same.

    One that names a `plugin` of Kubernetes' own counts on nodes that have migrated from it.
    """

    driver: str
    handle: str
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that a pod mounts without a claim: not twice on a node, unless all only read it.

    Two disks are the same if they have a name in common.
    """

    names: tuple[str, ...]
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """A volume of a pod: the claim (`namespace/name`) that it mounts, or a disk without a claim.

    `owners` is not empty for a generic ephemeral volume: the uid and the name of its pod, one of
    which the claim must give as its owner.
    """

    claim: str = ""
    owners: tuple[str, ...] = ()
    disk: Disk | None = None
    csi: CsiVolume | None = None


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """What becomes of an unbound claim (`namespace/name`) when its pod starts on a node.

    It is bound to this volume; without one, a volume is provisioned for it, near the node.
    """

    claim: str
    volume: str | None = None


@dataclass(frozen=True, slots=True)
class VolumeAffinity:
    """The nodes that a volume can be used on: with these terms, one of which must hold; None: all.

    `migrated` stands in place of them on nodes that have migrated from this `plugin`.
    """

    required: tuple[Term, ...] | None = None
    plugin: str = ""
    migrated: tuple[Term, ...] | None = None


ANYWHERE = VolumeAffinity()
"""A volume that can be used on every node."""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A volume: what it offers, where it can be used, and which claim (`namespace/name`) has it.

    `zones` are the values of its zone and region labels; a node with such labels must have one.
    """

    name: str
    storage_class: str = ""
    size: int = 0
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    attributes_class: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    affinity: VolumeAffinity = ANYWHERE
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    csi: CsiVolume | None = None
    claim: str = ""
    claim_uid: str = ""
    available: bool = True
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim (`namespace/name`): what it asks for, and the volume that it has.

    `bound`: both sides are written. `volume` alone is a wish, or a binding under way. `owner` is
    the uid of the pod whose ephemeral volume it is, or its name where no uid is known.
    """

    path: str
    uid: str = ""
    storage_class: str = ""
    size: int = 0
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    attributes_class: str = ""
    selector: tuple[Requirement, ...] = ()
    volume: str = ""
    bound: bool = False
    lost: bool = False
    deleted: bool = False
    owner: str = ""
    selected_node: str | None = None
    """The node near which its volume is being provisioned."""

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"claim {self.path}"

    @property
    def one_pod(self) -> bool:
        """May only one pod at a time use it?"""
        return "ReadWriteOncePod" in self.access_modes


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass. `waits`: its claims are bound when a pod needs them, not at once.

    `provisions`: does something provision volumes for it, on nodes that match one of the
    `topologies`, or everywhere without any? `csi` is how such a volume counts, as far as its
    driver is known.
    """

    name: str
    waits: bool = False
    provisioner: str = ""
    provisions: bool = True
    topologies: tuple[Term, ...] = ()
    csi: CsiVolume | None = None


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """The CSI drivers of a node: how many volumes it takes of each, and the plugins replaced."""

    node: str
    limits: tuple[tuple[str, int], ...] = ()
    migrated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageDriver:
    """A CSI driver. `tracks_capacity`: it says by `StorageCapacity` where it has how much left."""

    name: str
    tracks_capacity: bool = False


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """The largest volume (`most` bytes) of a class that can be provisioned for some nodes.

    `nodes` must all hold for a node's labels; None: for no node.
    """

    path: str
    storage_class: str
    most: int = -1
    nodes: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A volume is attached to a node by this CSI driver, whether or not a pod uses it."""

    name: str
    node: str
    driver: str
    volume: str


StorageObject = (
    PersistentVolume
    | VolumeClaim
    | StorageClass
    | NodeDrivers
    | StorageDriver
    | StorageCapacity
    | VolumeAttachment
)
"""What volumes depend on, beside pods and nodes."""

StorageKind = Literal[
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
]

StorageKey = tuple[StorageKind, str]
"""A kind and a name (`namespace/name`), which identify such an object."""


def storage_key(found: StorageObject) -> StorageKey:
    """The key of an object."""
    match found:
        case PersistentVolume(name=name):
            return "PersistentVolume", name
        case VolumeClaim(path=path):
            return "PersistentVolumeClaim", path
        case StorageClass(name=name):
            return "StorageClass", name
        case NodeDrivers(node=node):
            return "CSINode", node
        case StorageDriver(name=name):
            return "CSIDriver", name
        case StorageCapacity(path=path):
            return "CSIStorageCapacity", path
        case VolumeAttachment(name=name):
            return "VolumeAttachment", name


def _types(hint: Any) -> tuple[type, ...]:
    """The classes of which a value with this type hint is one."""
    parts = get_args(hint) if type(hint) is type(int | None) else (hint,)
    return tuple(get_origin(each) or each for each in parts)


_FIELDS = {
    kind: tuple((each.name, _types(each.type)) for each in fields(kind))
    for kind in get_args(StorageObject)
}
"""The classes of the values of each field."""


def is_sound(found: object) -> bool:
    """Is an object what its type says, as far as the books count on it? There may be very many."""
    known = _FIELDS.get(type(found), ())
    return bool(known) and all(type(getattr(found, name)) in types for name, types in known)


DRIVERS = "drivers of nodes"
"""The news that a node may take more volumes of a driver."""


def claim_news(path: str) -> str:
    """The news of a claim, or of who uses it."""
    return f"claim {path}"


def volume_news(name: str) -> str:
    """The news of a volume."""
    return f"volume {name}"


def class_news(name: str) -> str:
    """The news that there may be another volume of a class, or that one may be provisioned."""
    return f"class {name}"
