"""Pods whose volumes are bound before they are, with the controllers that bind them.

On the real server they are kube-controller-manager's own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.json import Body
from tests.build.manifests import limited_pod, ready_node
from tests.build.storage import claim, claim_spec, mounted, storage_class, volume
from tests.cluster.plane import controller_manager as manager
from tests.cluster.plane.cluster import Cluster

SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
FAST = "csi.example.com"


@pytest.fixture(autouse=True)
def _binary(cluster: Cluster) -> None:
    if cluster.server.real and manager.controller_manager() is None:
        pytest.skip(manager.NO_CONTROLLER_MANAGER)


@pytest.fixture
def bound(cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """The controllers run that bind volumes and make the pods of StatefulSets."""
    with manager.controllers(cluster, tmp_path, *manager.VOLUMES, "statefulset-controller"):
        yield


def stateful_set(replicas: int, **spec: object) -> Body:
    template = limited_pod("db/db", {"cpu": 1})["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"namespace": "db", "name": "db"},
        "spec": {
            **{"replicas": replicas, "serviceName": "db", "podManagementPolicy": "Parallel"},
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": template},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec()}],
            **spec,
        },
    }


def disk_of(cluster: Cluster, claim: str) -> str:
    """The node whose disk a claim has."""
    name = cluster.get("PersistentVolumeClaim", claim)["spec"]["volumeName"]
    spec = cluster.get("PersistentVolume", name)["spec"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return str(term["matchExpressions"][0]["values"][0])


def test_the_pods_of_a_stateful_set_run_where_their_volumes_are(
    cluster: Cluster, bound: None
) -> None:
    cluster.apply(storage_class("local"), *(ready_node(f"n-{at}") for at in range(4)))
    cluster.apply(volume("pv-1", "n-1"), volume("pv-2", "n-2"))
    with cluster.scheduler():
        cluster.apply(stateful_set(3))
        started: list[str] = []

        def two_run() -> str | None:
            pods = [each for each in cluster.all("Pod") if each["spec"].get("nodeName")]
            started[:] = sorted(each["metadata"]["name"] for each in pods)
            return None if len(pods) == 2 else f"{started} have a node"

        cluster.until(two_run)
        for name in started:
            cluster.running(f"db/{name}", on=disk_of(cluster, f"db/data-{name}"))
            cluster.shows(
                "PersistentVolumeClaim", f"db/data-{name}", {"status": {"phase": "Bound"}}
            )
        (waits,) = {"db-0", "db-1", "db-2"} - {*started}
        cluster.pending(f"db/{waits}", "Unschedulable")
        cluster.apply(volume("pv-3", "n-3"))
        cluster.running(f"db/{waits}", on="n-3")
        for name in ("pv-1", "pv-2", "pv-3"):
            cluster.shows("PersistentVolume", name, {"status": {"phase": "Bound"}})
            noted = cluster.get("PersistentVolume", name)["metadata"]["annotations"]
            assert noted[BY_CONTROLLER] == "yes"
        uid = cluster.get("Pod", f"db/{waits}")["metadata"]["uid"]
        cluster.delete("Pod", f"db/{waits}")
        cluster.until(
            lambda: (
                cluster.wire.get(f"/api/v1/namespaces/db/pods/{waits}").code != 200
                or cluster.get("Pod", f"db/{waits}")["metadata"]["uid"] == uid
            )
        )
        cluster.running(f"db/{waits}", on="n-3")


def test_a_volume_is_provisioned_near_the_node_of_its_pod(cluster: Cluster, bound: None) -> None:
    """On the real server the test is the provisioner: it gives the first node back."""
    cluster.apply(storage_class("fast", FAST), ready_node("n-1"), claim("a/data", "fast"))
    with cluster.scheduler():
        cluster.apply(limited_pod("a/p", {"cpu": 1}, volumes=mounted("data")))
        if cluster.server.real:
            selected = {"metadata": {"annotations": {SELECTED: "n-1"}}}
            cluster.shows("PersistentVolumeClaim", "a/data", selected)
            message = cluster.pending("a/p", "WaitingForVolume", "n-1", "claim a/data")
            assert "provisioned near n-1" in message
            cluster.patch(
                "PersistentVolumeClaim", "a/data", {"metadata": {"annotations": {SELECTED: None}}}
            )
            cluster.told("Pod", "a/p", "FailedScheduling", "BindingFailed", "claim a/data")
            cluster.shows("PersistentVolumeClaim", "a/data", selected)
            about = cluster.get("PersistentVolumeClaim", "a/data")["metadata"]
            reference = {word: about[word] for word in ("namespace", "name", "uid")}
            reference |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            cluster.apply(volume("pvc-1", "n-1", "fast", claimRef=reference))
        cluster.running("a/p", on="n-1")
        assert disk_of(cluster, "a/data") == "n-1"


def test_a_pod_that_waits_for_its_volume_keeps_its_room_through_a_restart(
    cluster: Cluster, tmp_path: Path
) -> None:
    if not cluster.server.real:
        pytest.skip("the controllers of the embedded server never stop")
    cluster.apply(storage_class("local"), ready_node("n-1", cpu=2), ready_node("n-2", cpu=2))
    cluster.apply(volume("pv-1", "n-1"), claim("a/data"))
    cluster.patch("PersistentVolume", "pv-1", {"status": {"phase": "Available"}}, "status")
    with cluster.scheduler():
        cluster.apply(limited_pod("a/p", {"cpu": 2}, volumes=mounted("data")))
        cluster.pending("a/p", "WaitingForVolume", "n-1", "claim a/data", "volume pv-1")
        version = cluster.get("PersistentVolume", "pv-1")["metadata"]["resourceVersion"]
    with cluster.scheduler():
        cluster.apply(*(limited_pod(f"a/other-{at}", {"cpu": 2}) for at in range(2)))
        cluster.until(lambda: not any(cluster.node_of(f"a/other-{at}") for at in range(2)))
        nodes = {cluster.node_of(f"a/other-{at}") for at in range(2)}
        assert nodes == {None, "n-2"}
        assert cluster.get("PersistentVolume", "pv-1")["metadata"]["resourceVersion"] == version
        with manager.controllers(cluster, tmp_path, *manager.VOLUMES):
            cluster.running("a/p", on="n-1")


def test_a_volume_that_is_not_bound_in_time_is_given_up(cluster: Cluster) -> None:
    if not cluster.server.real:
        pytest.skip("the controllers of the embedded server bind every volume at once")
    cluster.apply(storage_class("fast", FAST), ready_node("n-1"), claim("a/data", "fast"))
    with cluster.scheduler(placement={"volumeBindTimeout": "1s"}):
        cluster.apply(limited_pod("a/p", {"cpu": 1}, volumes=mounted("data")))
        cluster.told("Pod", "a/p", "FailedScheduling", "provisioned near n-1", "for 1 s by now")
        cluster.waiting("a/p")
        selected = {"metadata": {"annotations": {SELECTED: "n-1"}}}
        cluster.shows("PersistentVolumeClaim", "a/data", selected)


def test_an_ephemeral_volume_is_made_bound_and_goes_with_its_pod(
    cluster: Cluster, bound: None
) -> None:
    cluster.apply(storage_class("local"), ready_node("n-1"), ready_node("n-2"))
    cluster.apply(volume("pv-1", "n-2", persistentVolumeReclaimPolicy="Retain"))
    ephemeral = {"volumeClaimTemplate": {"spec": claim_spec()}}
    volumes = [{"name": "scratch", "ephemeral": ephemeral}]
    with cluster.scheduler():
        cluster.apply(limited_pod("a/p", {"cpu": 1}, volumes=volumes))
        cluster.running("a/p", on="n-2")
        (owner,) = cluster.get("PersistentVolumeClaim", "a/p-scratch")["metadata"][
            "ownerReferences"
        ]
        assert owner["kind"] == "Pod"
