"""Corners of filters about volumes: bound, local and provisioned ones, one pod, limits."""

from typing import Any

import pytest

from aliquot.json import Body
from tests.build.manifests import resource
from tests.build.storage import mounted
from tests.placement.corners import (
    GONE,
    HOST,
    IN_A,
    IN_B,
    N1,
    N2,
    NONE,
    ZONE,
    Case,
    check,
    exprs,
    node,
    placed,
    runs,
    says,
)

DRIVER = "disk.example.com"
ONE_POD: Body = {"accessModes": ["ReadWriteOncePod"]}


def kind(name: str = "c", provisioner: str = DRIVER, **more: Any) -> Body:
    """A class whose claims wait for their first pod."""
    more = {"volumeBindingMode": "WaitForFirstConsumer", **more}
    return resource("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, **more)


LOCAL = kind(provisioner="kubernetes.io/no-provisioner")


def claim(name: str, volume: str = "", size: str = "1Gi", **more: Any) -> Body:
    """A claim of class `c`, bound if it has a volume."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", **more}
    spec["resources"] = {"requests": {"storage": size}}
    found = resource("v1", "PersistentVolumeClaim", f"d/{name}", spec=spec)
    if volume:
        spec["volumeName"], found["status"] = volume, {"phase": "Bound"}
        found["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return found


def volume(
    name: str, of: str = "", only: Body | None = None, size: str = "1Gi", **more: Any
) -> Body:
    """A volume of class `c`, of a claim if one is given, on nodes of these labels."""
    labels = more.pop("labels", {})
    spec: Body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "c",
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": name},
        **more,
    }
    if of:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "d", "name": of}
    if only is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [exprs(only)]}}
    found = resource("v1", "PersistentVolume", name, labels=labels, spec=spec)
    return found | ({"status": {"phase": "Bound"}} if of else {})


def on(name: str) -> Body:
    return says(HOST, "In", name)


def mounts(*claims: str, **more: Any) -> Body:
    """The pod that is to be placed, with these claims."""
    return placed(volumes=mounted(*claims), **more)


def takes(name: str, count: int) -> Body:
    """How many volumes of the driver a node takes."""
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}
    return resource("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]})


def capacity(name: str, zone: str, size: str, **more: Any) -> Body:
    """What the driver has left in a zone."""
    topology = {"matchLabels": {ZONE: zone}}
    about = {"storageClassName": "c", "capacity": size, "nodeTopology": topology, **more}
    return resource("storage.k8s.io/v1", "CSIStorageCapacity", f"d/{name}", **about)


def disk(**more: Any) -> list[Body]:
    return [{"name": "disk", "gcePersistentDisk": {"pdName": "disk", **more}}]


SAYS_CAPACITY = resource("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={"storageCapacity": True})
USED_BY_ONE = [kind(), claim("x", "v", **ONE_POD), volume("v", "x", **ONE_POD)]
TWO_DISKS = [kind(), claim("x", "v"), volume("v", "x"), claim("y", "w"), volume("w", "y")]

CASES: dict[str, Case] = {
    "a volume of one zone": (
        [
            *(IN_A, IN_B, kind(), claim("x", "v")),
            *(volume("v", "x", says(ZONE, "In", "b")), mounts("x")),
        ],
        {"n2"},
    ),
    "a volume labelled with two zones": (
        [
            *(IN_A, IN_B, node("n3", "c"), kind(), claim("x", "v")),
            *(volume("v", "x", labels={ZONE: "b__c"}), mounts("x", nodeSelector={HOST: "n3"})),
        ],
        {"n3"},
    ),
    "a volume that is large enough": (
        [
            *(N1, N2, LOCAL, claim("x", size="5Gi")),
            *(volume("v", only=on("n1")), volume("w", only=on("n2"), size="9Gi"), mounts("x")),
        ],
        {"n2"},
    ),
    "a volume for each claim": (
        [
            *(N1, N2, LOCAL, claim("x"), claim("y"), mounts("x", "y")),
            *(volume("v", only=on("n1")), volume("w", only=on("n2")), volume("u", only=on("n2"))),
        ],
        {"n2"},
    ),
    "a volume that the claim selects": (
        [
            *(N1, N2, LOCAL, claim("x", selector={"matchLabels": {"q": "1"}}), mounts("x")),
            *(volume("v", only=on("n1")), volume("w", only=on("n2"), labels={"q": "1"})),
        ],
        {"n2"},
    ),
    "a disk is no file system": (
        [N1, LOCAL, claim("x", volumeMode="Block"), volume("v", only=on("n1")), mounts("x")],
        NONE,
    ),
    "a volume is not shared more than it can be": (
        [
            *(N1, LOCAL, claim("x", accessModes=["ReadWriteMany"])),
            *(volume("v", only=on("n1")), mounts("x")),
        ],
        NONE,
    ),
    "where a class provisions": (
        [
            *(IN_A, IN_B, claim("x"), mounts("x")),
            kind(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]),
        ],
        {"n2"},
    ),
    "where a driver has room": (
        [
            *(IN_A, IN_B, kind(), SAYS_CAPACITY, claim("x"), mounts("x")),
            *(capacity("a", "a", "500Mi"), capacity("b", "b", "5Gi")),
        ],
        {"n2"},
    ),
    "no volume larger than a driver makes them": (
        [
            *(IN_A, kind(), SAYS_CAPACITY, claim("x"), mounts("x")),
            capacity("a", "a", "50Gi", maximumVolumeSize="500Mi"),
        ],
        NONE,
    ),
    "a claim of one pod that is in use": (
        [N1, N2, *USED_BY_ONE, runs("d/r", volumes=mounted("x")), mounts("x")],
        NONE,
    ),
    "a claim of one pod that has ended": (
        [
            *(N1, *USED_BY_ONE, mounts("x")),
            {**runs("d/r", volumes=mounted("x")), "status": {"phase": "Failed"}},
        ],
        {"n1"},
    ),
    "a claim of one node, which is no rule of a scheduler": (
        [
            *(N1, N2, kind(), claim("x", "v"), volume("v", "x")),
            *(runs("d/r", volumes=mounted("x")), mounts("x", nodeSelector={HOST: "n2"})),
        ],
        {"n2"},
    ),
    "a claim that is missing": ([N1, mounts("x")], NONE),
    "a claim that is being deleted": (
        [
            *(N1, kind(), volume("v", "x"), mounts("x")),
            {**claim("x", "v"), "metadata": claim("x", "v")["metadata"] | GONE},
        ],
        NONE,
    ),
    "a volume that is missing": ([N1, kind(), claim("x", "v"), mounts("x")], NONE),
    "as many volumes as a node takes": (
        [
            *(N1, N2, takes("n1", 1), takes("n2", 1), *TWO_DISKS),
            *(runs("d/r", volumes=mounted("x")), mounts("y")),
        ],
        {"n2"},
    ),
    "one volume counts once": (
        [N1, takes("n1", 1), *TWO_DISKS, runs("d/r", volumes=mounted("x")), mounts("x")],
        {"n1"},
    ),
    "volumes to be provisioned count": (
        [
            *(N1, N2, takes("n1", 1), takes("n2", 2), kind()),
            *(claim("x"), claim("y"), mounts("x", "y")),
        ],
        {"n2"},
    ),
    "a node that takes none": ([N1, takes("n1", 0), kind(), claim("x"), mounts("x")], NONE),
    "a disk that is mounted already": (
        [N1, N2, runs("d/r", volumes=disk()), placed(volumes=disk(readOnly=True))],
        {"n2"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pod_starts_where_kube_scheduler_would_put_it(name: str) -> None:
    check(CASES[name])
