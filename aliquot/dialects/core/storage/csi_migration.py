"""Volumes that are written for a plugin of Kubernetes' own, which a CSI driver has replaced.

They count for the driver, and on a node that says it has migrated (`CSINode`) the driver's label
for zones stands in place of Kubernetes'. Volumes of other old plugins count for no driver.
"""

import re

from aliquot.dialects.core.objects import DiskSource, PodVolume
from aliquot.dialects.core.storage.objects import VolumeSpec
from aliquot.engine import CsiVolume, Requirement, Term, VolumeAffinity

_GCE, _AWS, _AZURE = "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk"
_CINDER, _PORTWORX = "kubernetes.io/cinder", "kubernetes.io/portworx-volume"
MOVED = {
    _GCE: "pd.csi.storage.gke.io",
    _AWS: "ebs.csi.aws.com",
    _AZURE: "disk.csi.azure.com",
    _CINDER: "cinder.csi.openstack.org",
    _PORTWORX: "pxd.portworx.com",
    "kubernetes.io/azure-file": "",
    "kubernetes.io/vsphere-volume": "",
}
"""The driver that counts the volumes of each old plugin; none, if they are not counted."""
MIGRATED = (_PORTWORX,)
"""The plugins whose volumes count only on nodes that say they have migrated."""
_ZONE_KEYS = {
    _GCE: "topology.gke.io/zone",
    _AWS: "topology.ebs.csi.aws.com/zone",
    _AZURE: "topology.disk.csi.azure.com/zone",
    _CINDER: "topology.cinder.csi.openstack.org/zone",
}
"""The label for zones of each driver."""
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION = "failure-domain.beta.kubernetes.io/region"
_ZONES = "__"
_MANAGED = "managed"
_AWS_VOLUME = re.compile(r"aws://[^/]*/(?P<id>vol-[^/]+)/*")
"""`aws://zone/vol-1`, another spelling of `vol-1`."""
Labels = dict[str, str]


def _source(holder: PodVolume | VolumeSpec) -> tuple[str, DiskSource] | None:
    """The old plugin that a volume is written for, and what it says there."""
    for plugin, source in (
        (_GCE, holder.gce_persistent_disk),
        (_AWS, holder.aws_elastic_block_store),
        (_AZURE, holder.azure_disk),
        (_CINDER, holder.cinder),
        (_PORTWORX, holder.portworx_volume),
    ):
        if source is not None:
            return plugin, source
    return None


def inline_csi(volume: PodVolume) -> CsiVolume | None:
    """How a volume that a pod mounts without a claim counts."""
    found = _source(volume)
    if found is None:
        return None
    return _counted(*found, "zones/UNSPECIFIED")


def csi_of(spec: VolumeSpec, labels: Labels) -> CsiVolume | None:
    """How a PersistentVolume counts."""
    if spec.csi is not None:
        return CsiVolume(spec.csi.driver, spec.csi.volume_handle)
    found = _source(spec)
    if found is None:
        return None
    return _counted(*found, _place(labels))


def _counted(plugin: str, source: DiskSource, place: str) -> CsiVolume | None:
    """How a volume of an old plugin counts; a disk of Azure only if it is a managed one."""
    if plugin == _AZURE and (source.kind or _MANAGED).lower() != _MANAGED:
        return None
    handle = _handle(plugin, source, place)
    return CsiVolume(MOVED[plugin], handle, plugin if plugin in MIGRATED else "")


def _handle(plugin: str, source: DiskSource, place: str) -> str:
    """The handle by which the driver knows a volume; `place` is the zone of a disk of Google's."""
    if plugin == _GCE:
        return f"projects/UNSPECIFIED/{place}/disks/{source.pd_name}"
    if plugin == _AZURE:
        return source.disk_uri
    if plugin == _AWS and (match := _AWS_VOLUME.fullmatch(source.volume_id)) is not None:
        return match["id"]
    return source.volume_id


def _place(labels: Labels) -> str:
    zones = (labels.get(_OLD_ZONE) or labels.get(_ZONE) or "").split(_ZONES)
    if len(zones) > 1:
        return f"regions/{zones[0].rpartition('-')[0]}"
    return f"zones/{zones[0] or 'UNSPECIFIED'}"


def affinity(spec: VolumeSpec, labels: Labels, terms: tuple[Term, ...] | None) -> VolumeAffinity:
    """Where a volume with these terms can be used, also on nodes that have migrated."""
    found = None if spec.csi is not None else _source(spec)
    if found is None:
        return VolumeAffinity(terms)
    plugin, _ = found
    key = _ZONE_KEYS.get(plugin)
    return VolumeAffinity(terms, plugin, terms if key is None else _moved(labels, terms, key))


def _moved(labels: Labels, terms: tuple[Term, ...] | None, key: str) -> tuple[Term, ...] | None:
    """The terms with the driver's label for zones: its values from the terms, or the labels."""
    used = {each.key for term in terms or () for each in term.labels}
    places = (_ZONE in used, _OLD_ZONE in used, _ZONE in labels, _OLD_ZONE in labels)
    is_new = next((index % 2 == 0 for index, there in enumerate(places) if there), True)
    zone = _ZONE if is_new else _OLD_ZONE
    stated = any(each.key == zone and each.values for t in terms or () for each in t.labels)
    names = {zone: key} if stated else {}
    if not is_new:
        names[_OLD_REGION] = _REGION
    moved = None if terms is None else tuple(_renamed(term, names) for term in terms)
    if stated:
        return moved
    zones = sorted({each.strip() for each in labels.get(zone, "").split(_ZONES)} - {""})
    if not zones:
        return moved
    there = Requirement(key, "In", tuple(zones))
    return tuple(Term((*term.labels, there), term.fields) for term in moved or (Term(),))


def _renamed(term: Term, names: Labels) -> Term:
    labels = (
        Requirement(names.get(each.key, each.key), each.operator, each.values)
        for each in term.labels
    )
    return Term(tuple(labels), term.fields)
