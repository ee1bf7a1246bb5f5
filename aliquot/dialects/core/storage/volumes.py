"""Volumes as the engine's: what pods mount, and the storage objects that decide about it.

What is said about a volume in several places is brought together here, as kube-scheduler reads it:
classes in old annotations, defaults that an API server would fill in.
"""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.label_selectors import canonical, requirements
from aliquot.dialects.core.labels import text_map, to_text
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.node_terms import node_term
from aliquot.dialects.core.objects import (
    LabelSelector,
    Metadata,
    PodSpec,
    PodVolume,
    Quantities,
    SelectorTerm,
)
from aliquot.dialects.core.storage.csi_migration import (
    MIGRATED,
    MOVED,
    affinity,
    csi_of,
    inline_csi,
)
from aliquot.dialects.core.storage.objects import (
    AttachmentSpec,
    AttachmentWire,
    CapacityWire,
    ClaimSpec,
    ClaimWire,
    NodeDriversSpec,
    NodeDriversWire,
    PhaseStatus,
    StorageClassWire,
    StorageDriverSpec,
    StorageDriverWire,
    TopologyTerm,
    VolumeSpec,
    VolumeWire,
)
from aliquot.engine import (
    CsiVolume,
    Disk,
    NodeDrivers,
    PersistentVolume,
    Requirement,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageKind,
    StorageObject,
    Term,
    VolumeAttachment,
    VolumeClaim,
    VolumeUse,
)
from aliquot.json import Body

KINDS: tuple[StorageKind, ...] = (
    *("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver"),
    *("CSIStorageCapacity", "VolumeAttachment"),
)
"""The kinds that decide about volumes."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_ZONE_LABELS = (
    *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
)
_ZONES = "__"
"""What parts several zones in a label of a volume."""
STANDARD_CLASS: Body = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": "sim.aliquot.dev",
}
"""The class of claims that name none, in a simulated cluster without a default class."""
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


def volume_uses(
    spec: PodSpec, namespace: str, pod_name: str, uid: str | None = None
) -> tuple[VolumeUse, ...]:
    """What a pod mounts, as far as that decides where it can run."""
    found = (_use(each, namespace, pod_name, uid) for each in spec.volumes or ())
    return tuple(each for each in found if each is not None)


def _use(volume: PodVolume, namespace: str, pod: str, uid: str | None) -> VolumeUse | None:
    if volume.persistent_volume_claim is not None:
        return VolumeUse(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
    if volume.ephemeral is not None:
        owners = (uid, pod) if uid else (pod,)
        return VolumeUse(f"{namespace}/{ephemeral_claim(pod, volume)}", owners)
    if not _is_disk(volume):
        return None  # as for the tokens that nearly every pod mounts
    disk, csi = _disk(volume), inline_csi(volume)
    return VolumeUse(disk=disk, csi=csi) if disk is not None or csi is not None else None


def _is_disk(volume: PodVolume) -> bool:
    return bool(
        volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.azure_disk
        or volume.cinder
        or volume.portworx_volume
        or volume.iscsi
        or volume.rbd
    )


def ephemeral_claim(pod: str, volume: PodVolume) -> str:
    """The name of the claim that is made for a generic ephemeral volume of a pod."""
    return f"{pod}-{volume.name}"


def _disk(volume: PodVolume) -> Disk | None:
    """A disk that two pods cannot have on one node; one of AWS not even to read it."""
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk((f"gce/{gce.pd_name}",), bool(gce.read_only))
    if (aws := volume.aws_elastic_block_store) is not None:
        return Disk((f"aws/{aws.volume_id}",))
    if (iscsi := volume.iscsi) is not None:
        return Disk((f"iscsi/{iscsi.iqn}",), bool(iscsi.read_only))
    if (rbd := volume.rbd) is not None:
        image = f"{rbd.pool or 'rbd'}/{rbd.image}"
        names = dict.fromkeys(f"rbd/{each}/{image}" for each in rbd.monitors or ())
        return Disk(tuple(names), bool(rbd.read_only))
    return None


def storage_object(manifest: Manifest) -> StorageObject | None:
    """A storage object as the engine's; None for other kinds."""
    match manifest.content:
        case VolumeWire():
            return volume(manifest)
        case ClaimWire():
            return claim(manifest)
        case StorageClassWire():
            return storage_class(manifest)
        case NodeDriversWire():
            return node_drivers(manifest)
        case StorageDriverWire(spec=spec):
            tracks = (spec or StorageDriverSpec()).storage_capacity
            return StorageDriver(manifest.name, bool(tracks))
        case CapacityWire():
            return _capacity(manifest)
        case AttachmentWire(spec=spec):
            written = spec or AttachmentSpec()
            source = written.source.persistent_volume_name if written.source else None
            return VolumeAttachment(
                manifest.name, written.node_name, written.attacher, source or ""
            )
    return None


def volume(manifest: Manifest) -> PersistentVolume:
    """A PersistentVolume. Without a phase, as in a file, it is available unless it is claimed."""
    read = manifest.content
    assert isinstance(read, VolumeWire)
    spec, status, metadata = read.spec or VolumeSpec(), read.status or PhaseStatus(), read.metadata
    labels = text_map(metadata.labels, manifest, "metadata.labels")
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    terms = None if required is None else _terms(required.node_selector_terms, manifest)
    ref = spec.claim_ref
    zones = ((key, tuple(_zones(labels[key]))) for key in _ZONE_LABELS if key in labels)
    return PersistentVolume(
        name=manifest.name,
        storage_class=_class(metadata, spec.storage_class_name),
        size=_bytes(spec.capacity, manifest, "spec.capacity"),
        access_modes=tuple(sorted(set(spec.access_modes or ()))),
        mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        labels=tuple(sorted(labels.items())),
        affinity=affinity(spec, labels, terms),
        zones=tuple((key, values) for key, values in zones if values),
        csi=csi_of(spec, labels),
        claim=f"{ref.namespace or 'default'}/{ref.name}" if ref is not None else "",
        claim_uid=(ref.uid or "") if ref is not None else "",
        available=(status.phase or "Available") == "Available",
        deleted=metadata.deletion_timestamp is not None,
    )


def _terms(written: list[SelectorTerm] | None, manifest: Manifest) -> tuple[Term, ...]:
    field = "spec.nodeAffinity.required"
    return tuple(node_term(each, manifest, field) for each in written or ())


def _zones(label: str) -> list[str]:
    """The zones that a label of a volume names; a label that cannot be read counts for nothing."""
    found = sorted({each.strip() for each in label.split(_ZONES)})
    return found if all(found) else []


def claim(manifest: Manifest) -> VolumeClaim:
    """A PersistentVolumeClaim."""
    read = manifest.content
    assert isinstance(read, ClaimWire)
    spec, status, metadata = read.spec or ClaimSpec(), read.status or PhaseStatus(), read.metadata
    resources = spec.resources
    asked = resources.requests if resources is not None else None
    annotations = metadata.annotations or {}
    node = annotations.get(SELECTED_NODE)
    return VolumeClaim(
        path=f"{manifest.namespace}/{manifest.name}",
        uid=metadata.uid or "",
        storage_class=_class(metadata, spec.storage_class_name),
        size=_bytes(asked, manifest, "spec.resources.requests"),
        access_modes=tuple(sorted(set(spec.access_modes or ()))),
        mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        selector=_selector(spec.selector, manifest, "spec.selector"),
        volume=spec.volume_name or "",
        bound=BIND_COMPLETED in annotations,
        lost=status.phase == "Lost",
        deleted=metadata.deletion_timestamp is not None,
        owner=_owner(metadata),
        selected_node=None if node is None else to_text(node),
    )


def _owner(metadata: Metadata) -> str:
    """The pod that controls a claim: its uid, or its name where it has none, as in a file."""
    for each in metadata.owner_references or ():
        if each.controller and each.kind == "Pod":
            return each.uid or each.name
    return ""


def storage_class(manifest: Manifest) -> StorageClass:
    """A StorageClass."""
    read = manifest.content
    assert isinstance(read, StorageClassWire)
    mode = read.volume_binding_mode or "Immediate"
    if mode not in _BINDING_MODES:
        problem = f"{mode!r} is none of {', '.join(_BINDING_MODES)}"
        manifest.refuse("volumeBindingMode", problem)
    provisions = read.provisioner not in ("", NO_PROVISIONER)
    driver = MOVED.get(read.provisioner, read.provisioner) if provisions else ""
    plugin = read.provisioner if read.provisioner in MIGRATED else ""
    return StorageClass(
        name=manifest.name,
        waits=mode == "WaitForFirstConsumer",
        provisioner=read.provisioner,
        provisions=provisions,
        topologies=tuple(_topology(each) for each in read.allowed_topologies or ()),
        csi=CsiVolume(driver, "", plugin) if driver else None,
    )


def _topology(term: TopologyTerm) -> Term:
    return Term(
        tuple(
            Requirement(each.key, "In", tuple(each.values or ()))
            for each in term.match_label_expressions or ()
        )
    )


def is_default(manifest: Manifest) -> bool:
    """Is it the class of claims that name none?"""
    annotations = manifest.metadata.annotations or {}
    return any(to_text(annotations.get(key)) == "true" for key in (IS_DEFAULT, _OLD_DEFAULT))


def node_drivers(manifest: Manifest) -> NodeDrivers:
    """The drivers of a node (CSINode), and the plugins of Kubernetes' own that they replace."""
    read = manifest.content
    assert isinstance(read, NodeDriversWire)
    drivers = (read.spec or NodeDriversSpec()).drivers or ()
    limits = {
        each.name: each.allocatable.count
        for each in drivers
        if each.allocatable is not None and each.allocatable.count is not None
    }
    written = to_text((read.metadata.annotations or {}).get(_MIGRATED_PLUGINS))
    migrated = tuple(sorted({each for each in written.split(",") if each}))
    return NodeDrivers(manifest.name, tuple(sorted(limits.items())), migrated)


def _capacity(manifest: Manifest) -> StorageCapacity:
    read = manifest.content
    assert isinstance(read, CapacityWire)
    written = read.maximum_volume_size if read.maximum_volume_size is not None else read.capacity
    most = None
    if written is not None:
        most = amounts.read_one(written, "storage", manifest, "capacity")
    nodes = None
    if read.node_topology is not None:
        nodes = _selector(read.node_topology, manifest, "nodeTopology")
    path = f"{manifest.namespace}/{manifest.name}"
    return StorageCapacity(path, read.storage_class_name, -1 if most is None else most, nodes)


def _selector(
    selector: LabelSelector | None, manifest: Manifest, field: str
) -> tuple[Requirement, ...]:
    return () if selector is None else canonical(requirements(selector, manifest, field))


def _class(metadata: Metadata, written: str | None) -> str:
    """The class of a volume or claim; an old annotation comes first."""
    old = (metadata.annotations or {}).get(_OLD_CLASS)
    return to_text(old) if old is not None else written or ""


def _bytes(quantities: Quantities | None, manifest: Manifest, field: str) -> int:
    """The storage of a map of quantities."""
    written = (quantities or {}).get("storage")
    if written is None:
        return 0
    return amounts.read_one(written, "storage", manifest, f"{field}[storage]") or 0
