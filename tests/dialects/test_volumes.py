"""Storage objects and volumes of pods, as the engine's values."""

from typing import Any

import pytest

from aliquot.dialects.core import pods
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.storage import volumes
from aliquot.engine import (
    CsiVolume,
    Disk,
    NodeDrivers,
    PersistentVolume,
    Requirement,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageObject,
    Term,
    VolumeAffinity,
    VolumeAttachment,
    VolumeClaim,
    VolumeUse,
)
from aliquot.errors import InputError

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


def manifest(kind: str, name: str = "x", group: str = "", **content: Any) -> Manifest:
    metadata = {"name": name, **content.pop("metadata", {})}
    version = f"{group}/v1" if group else "v1"
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
    found = read(Document("here", body))
    assert found is not None
    return found


def storage(kind: str, **content: Any) -> StorageObject:
    group = "" if kind.startswith("Persistent") else "storage.k8s.io"
    found = volumes.storage_object(manifest(kind, group=group, **content))
    assert found is not None
    return found


def volume(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    metadata = {"labels": labels or {}}
    found = storage("PersistentVolume", metadata=metadata, spec=spec)
    assert isinstance(found, PersistentVolume)
    return found


def uses(*written: dict[str, Any], uid: str | None = None) -> tuple[VolumeUse, ...]:
    named = [{"name": f"v{number}", **each} for number, each in enumerate(written)]
    spec = {"containers": [{"name": "c"}], "volumes": named}
    pod = manifest("Pod", "p", metadata={"namespace": "a"}, spec=spec)
    return volumes.volume_uses(pods.spec(pod), "a", "p", uid)


def terms(key: str, *values: str) -> tuple[Term, ...]:
    return (Term((Requirement(key, "In", values),)),)


def affinity(key: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def test_what_does_not_decide_where_a_pod_runs_is_left_out() -> None:
    csi = {"csi": {"driver": "secrets.example.com"}}
    assert uses({"projected": {}}, {"emptyDir": {}}, csi, {"configMap": {"name": "x"}}) == ()


def test_claims_and_ephemeral_volumes_of_pods() -> None:
    own: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    mounted = {"persistentVolumeClaim": {"claimName": "data"}}
    assert uses(mounted, own) == (VolumeUse("a/data"), VolumeUse("a/p-v1", ("p",)))
    assert uses(own, uid="u") == (VolumeUse("a/p-v0", ("u", "p")),)


def test_disks_of_pods() -> None:
    """Which can be shared, by which names they are told apart, for which driver they count."""
    rbd = {"monitors": ["m1", "m2"], "image": "i", "readOnly": True}
    assert uses({"rbd": rbd}) == (
        VolumeUse(disk=Disk(("rbd/m1/rbd/i", "rbd/m2/rbd/i"), read_only=True)),
    )
    assert uses({"iscsi": {"iqn": "q", "targetPortal": "t", "lun": 0}})[0].disk == Disk(
        ("iscsi/q",)
    )
    (aws,) = uses({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1", "readOnly": True}})
    assert aws.disk == Disk(("aws/aws://z/vol-1",))
    assert aws.csi == CsiVolume("ebs.csi.aws.com", "vol-1")
    (gce,) = uses({"gcePersistentDisk": {"pdName": "d", "readOnly": True}})
    assert gce.disk == Disk(("gce/d",), read_only=True)
    assert gce.csi is not None
    assert gce.csi.driver == "pd.csi.storage.gke.io"
    azure = {"diskName": "d", "diskURI": "/uri"}
    assert uses({"azureDisk": azure}) == (VolumeUse(csi=CsiVolume("disk.csi.azure.com", "/uri")),)
    assert uses({"azureDisk": {**azure, "kind": "Dedicated"}}) == ()
    portworx = CsiVolume("pxd.portworx.com", "px", "kubernetes.io/portworx-volume")
    assert uses({"portworxVolume": {"volumeID": "px"}}) == (VolumeUse(csi=portworx),)


def test_a_volume_says_what_it_offers_and_where() -> None:
    found = volume(
        {ZONE: "a__b", "speed": "fast"},
        capacity={"storage": "1Gi"},
        accessModes=["ReadWriteOnce", "ReadOnlyMany"],
        volumeMode="Block",
        storageClassName="c",
        csi={"driver": "d", "volumeHandle": "h"},
        claimRef={"namespace": "a", "name": "x", "uid": "u"},
        nodeAffinity=affinity(ZONE, "a", "b"),
    )
    assert found == PersistentVolume(
        name="x",
        storage_class="c",
        size=2**30,
        access_modes=("ReadOnlyMany", "ReadWriteOnce"),
        mode="Block",
        labels=(("speed", "fast"), (ZONE, "a__b")),
        affinity=VolumeAffinity(terms(ZONE, "a", "b")),
        zones=((ZONE, ("a", "b")),),
        csi=CsiVolume("d", "h"),
        claim="a/x",
        claim_uid="u",
    )


def test_a_zone_label_that_cannot_be_read_counts_for_nothing() -> None:
    assert volume({ZONE: "a__"}).zones == ()


@pytest.mark.parametrize(
    ("phase", "available"),
    [("Available", True), ("Bound", False), ("Released", False), ("Pending", False), (None, True)],
)
def test_a_volume_is_available_by_its_phase(phase: str | None, available: bool) -> None:
    status = {} if phase is None else {"status": {"phase": phase}}
    found = storage("PersistentVolume", spec={}, **status)
    assert isinstance(found, PersistentVolume)
    assert found.available is available


def test_on_nodes_that_have_migrated_the_zone_label_is_the_drivers() -> None:
    """Its values are those of the affinity, or else of the volume's own labels."""
    key, plugin = "topology.ebs.csi.aws.com/zone", "kubernetes.io/aws-ebs"
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    stated = volume(nodeAffinity=affinity(ZONE, "a"), **disk)
    assert stated.affinity == VolumeAffinity(terms(ZONE, "a"), plugin, terms(key, "a"))
    labelled = volume({ZONE: "b__a"}, **disk)
    assert labelled.affinity == VolumeAffinity(None, plugin, terms(key, "a", "b"))
    neither = volume(nodeAffinity=affinity("host", "n"), **disk)
    assert neither.affinity == VolumeAffinity(terms("host", "n"), plugin, terms("host", "n"))
    old = volume({OLD_ZONE: "a"}, nodeAffinity=affinity(OLD_REGION, "r"), **disk)
    region = Requirement("topology.kubernetes.io/region", "In", ("r",))
    assert old.affinity.migrated == (Term((region, Requirement(key, "In", ("a",)))),)
    assert volume(nfs={"server": "s", "path": "/"}).affinity == VolumeAffinity()


def test_disks_of_google_are_told_apart_by_zone() -> None:
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    handles = [
        volume(labels, **disk).csi.handle  # type: ignore[union-attr]
        for labels in ({}, {ZONE: "us-e1-b"}, {ZONE: "us-e1-b__us-e1-c"})
    ]
    assert handles == [
        "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        "projects/UNSPECIFIED/zones/us-e1-b/disks/d",
        "projects/UNSPECIFIED/regions/us-e1/disks/d",
    ]


def test_a_claim_says_what_it_asks_for_and_how_far_its_binding_is() -> None:
    annotations = {
        "pv.kubernetes.io/bind-completed": "yes",
        "volume.kubernetes.io/selected-node": "n1",
        "volume.beta.kubernetes.io/storage-class": "old",
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    found = storage(
        "PersistentVolumeClaim",
        metadata={"namespace": "a", "annotations": annotations, "ownerReferences": [owner]},
        spec={
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "new",
            "volumeName": "v",
            "resources": {"requests": {"storage": "1500Mi"}},
            "selector": {"matchLabels": {"speed": "fast"}},
        },
        status={"phase": "Lost"},
    )
    assert found == VolumeClaim(
        path="a/x",
        storage_class="old",
        size=1500 * 2**20,
        access_modes=("ReadWriteOncePod",),
        selector=(Requirement("speed", "In", ("fast",)),),
        volume="v",
        bound=True,
        lost=True,
        owner="u",
        selected_node="n1",
    )


def test_classes_drivers_capacities_and_attachments() -> None:
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    waits = {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topology}
    assert storage("StorageClass", provisioner="d", **waits) == StorageClass(
        "x", True, "d", True, terms(ZONE, "a"), CsiVolume("d", "")
    )
    none = "kubernetes.io/no-provisioner"
    assert storage("StorageClass", provisioner=none) == StorageClass("x", False, none, False)
    moved = storage("StorageClass", provisioner="kubernetes.io/aws-ebs")
    assert isinstance(moved, StorageClass)
    assert moved.csi == CsiVolume("ebs.csi.aws.com", "")
    uncounted = storage("StorageClass", provisioner="kubernetes.io/vsphere-volume")
    assert isinstance(uncounted, StorageClass)
    assert (uncounted.csi, uncounted.provisions) == (None, True)
    listed = [
        {"name": "d", "nodeID": "n", "allocatable": {"count": 3}},
        {"name": "e", "nodeID": "n"},
    ]
    plugins = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder,"}
    node = storage("CSINode", metadata={"annotations": plugins}, spec={"drivers": listed})
    assert node == NodeDrivers("x", (("d", 3),), ("kubernetes.io/cinder",))
    assert storage("CSIDriver", spec={"storageCapacity": True}) == StorageDriver("x", True)
    room = {"storageClassName": "c", "capacity": "5Gi", "metadata": {"namespace": "k"}}
    assert storage("CSIStorageCapacity", **room) == StorageCapacity("k/x", "c", 5 * 2**30)
    room |= {"maximumVolumeSize": "1Gi", "nodeTopology": {"matchLabels": {ZONE: "a"}}}
    nodes = (Requirement(ZONE, "In", ("a",)),)
    assert storage("CSIStorageCapacity", **room) == StorageCapacity("k/x", "c", 2**30, nodes)
    spec = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    assert storage("VolumeAttachment", spec=spec) == VolumeAttachment("x", "n", "d", "v")


def test_a_binding_mode_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="is none of Immediate, WaitForFirstConsumer"):
        storage("StorageClass", provisioner="d", volumeBindingMode="Later")
