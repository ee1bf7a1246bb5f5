"""Kubernetes' storage objects, as they stand in JSON: volumes, claims, classes, drivers."""

import msgspec

from aliquot.dialects.core.objects import (
    DiskSource,
    LabelSelector,
    Metadata,
    Quantities,
    RequiredTerms,
    ResourceRequirements,
    SelectorRequirement,
    Wire,
)


class ObjectRef(Wire):
    """A reference to an object."""

    namespace: str | None = None
    name: str = ""
    uid: str | None = None


class VolumeNodeAffinity(Wire):
    """The nodes that a volume can be used on."""

    required: RequiredTerms | None = None


class VolumeSpec(Wire):
    """The spec of a PersistentVolume."""

    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    storage_class_name: str | None = None
    claim_ref: ObjectRef | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: DiskSource | None = None
    gce_persistent_disk: DiskSource | None = None
    aws_elastic_block_store: DiskSource | None = None
    azure_disk: DiskSource | None = None
    cinder: DiskSource | None = None
    portworx_volume: DiskSource | None = None


class PhaseStatus(Wire):
    """The status of a volume or a claim."""

    phase: str | None = None


class VolumeWire(Wire):
    """A PersistentVolume."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: VolumeSpec | None = None
    status: PhaseStatus | None = None


class ClaimSpec(Wire):
    """The spec of a PersistentVolumeClaim."""

    resources: ResourceRequirements | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    storage_class_name: str | None = None
    selector: LabelSelector | None = None
    volume_name: str | None = None


class ClaimWire(Wire):
    """A PersistentVolumeClaim."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: ClaimSpec | None = None
    status: PhaseStatus | None = None


class TopologyTerm(Wire):
    """Labels of which a node must have one of the values each."""

    match_label_expressions: list[SelectorRequirement] | None = None


class StorageClassWire(Wire):
    """A StorageClass."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class DriverLimit(Wire):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class NodeDriverWire(Wire):
    """A CSI driver of a node."""

    name: str = ""
    allocatable: DriverLimit | None = None


class NodeDriversSpec(Wire):
    """The CSI drivers of a node."""

    drivers: list[NodeDriverWire] | None = None


class NodeDriversWire(Wire):
    """A CSINode."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: NodeDriversSpec | None = None


class StorageDriverSpec(Wire):
    """The spec of a CSIDriver."""

    storage_capacity: bool | None = None


class StorageDriverWire(Wire):
    """A CSIDriver."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: StorageDriverSpec | None = None


class CapacityWire(Wire):
    """A CSIStorageCapacity."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(Wire):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class AttachmentSpec(Wire):
    """The spec of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource | None = None


class AttachmentWire(Wire):
    """A VolumeAttachment."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: AttachmentSpec | None = None
