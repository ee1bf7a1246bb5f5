"""Volumes in simulations: bound and provisioned at once, kept when pods end, let go with claims."""

from typing import Any

import yaml

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core import documents
from aliquot.json import Body
from aliquot.simulation.objects import objects
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import collect

ZONE = "topology.kubernetes.io/zone"


def node(name: str, **labels: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: labels["zone"]} if labels else {}},
        "status": {"allocatable": {"cpu": "8", "pods": "9"}},
    }


def pod(name: str, claim: str, **annotations: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "annotations": annotations},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }


def claim(name: str, **spec: Any) -> Body:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {**asked, **spec},
    }


def storage_class(name: str, default: bool = False, **content: Any) -> Body:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": marked},
        "provisioner": "disk.example.com",
        **content,
    }


def volume(name: str, **spec: Any) -> Body:
    offered = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**offered, **spec},
    }


def played(*bodies: Body) -> dict[tuple[str, str], Body]:
    """The objects at the end, by kind and name."""
    given = collect(documents.parse(yaml.safe_dump_all(bodies), "objects"), Configuration())
    simulation = Simulation(given, "capacity")
    simulation.run()
    return {(each["kind"], each["metadata"]["name"]): each for each in objects(simulation)}


def deletion(at: str, kind: str, name: str) -> Body:
    gone = {"kind": kind, "name": name}
    if kind == "PersistentVolumeClaim":
        gone["namespace"] = "a"
    steps = [{"at": at, "delete": [gone]}]
    return {"apiVersion": "aliquot.dev/v1alpha1", "kind": "Timeline", "steps": steps}


def bound_to(found: dict[tuple[str, str], Body], name: str) -> str | None:
    body = found["PersistentVolumeClaim", name]
    if (body.get("status") or {}).get("phase") != "Bound":
        return None
    volume_name = str(body["spec"]["volumeName"])
    reference = found["PersistentVolume", volume_name]["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == ("a", name)
    return volume_name


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    found = played(node("n"), storage_class("mine", default=True), claim("x"))
    assert found["PersistentVolumeClaim", "x"]["spec"]["storageClassName"] == "mine"
    assert bound_to(found, "x") == "pvc-a-x"
    assert ("StorageClass", "standard") not in found


def test_without_a_default_class_there_is_one_that_provisions_everywhere() -> None:
    found = played(node("n"), claim("x"), pod("p", "x"))
    assert found["PersistentVolumeClaim", "x"]["spec"]["storageClassName"] == "standard"
    assert found["Pod", "p"]["status"]["phase"] == "Running"
    assert "nodeAffinity" not in found["PersistentVolume", "pvc-a-x"]["spec"]


def test_a_claim_that_wants_no_class_gets_a_volume_without_one() -> None:
    found = played(volume("v", storageClassName=""), claim("x", storageClassName=""))
    assert bound_to(found, "x") == "v"


def test_a_claim_gets_the_smallest_volume_that_fits_unless_one_is_kept_for_it() -> None:
    large = volume("large", storageClassName="c", capacity={"storage": "9Gi"})
    kept = volume("kept", storageClassName="c", claimRef={"namespace": "a", "name": "y"})
    kept["spec"]["capacity"] = {"storage": "20Gi"}
    fits = volume("fits", storageClassName="c")
    asks = [claim("x", storageClassName="c"), claim("y", storageClassName="c")]
    found = played(large, kept, fits, *asks, storage_class("c"))
    assert (bound_to(found, "x"), bound_to(found, "y")) == ("fits", "kept")


def test_a_claim_that_names_its_volume_gets_no_other() -> None:
    asks = claim("x", storageClassName="c", volumeName="mine")
    other = volume("other", storageClassName="c")
    assert bound_to(played(asks, other, storage_class("c")), "x") is None
    mine = volume("mine", storageClassName="c", capacity={"storage": "9Gi"})
    assert bound_to(played(asks, other, mine, storage_class("c")), "x") == "mine"


def test_a_class_that_waits_provisions_where_the_pod_starts() -> None:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    waits = storage_class(
        "c", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=topologies
    )
    nodes = [node("n1", zone="a"), node("n2", zone="b")]
    idle = played(*nodes, waits, claim("x", storageClassName="c"))
    assert bound_to(idle, "x") is None
    found = played(*nodes, waits, claim("x", storageClassName="c"), pod("p", "x"))
    assert found["Pod", "p"]["spec"]["nodeName"] == "n2"
    terms = found["PersistentVolume", "pvc-a-x"]["spec"]["nodeAffinity"]["required"]
    expression = {"key": ZONE, "operator": "In", "values": ["b"]}
    assert terms == {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def test_volumes_stay_when_pods_end_and_go_with_their_claims_as_they_say() -> None:
    ends = pod("p", "x", **{"sim.aliquot.dev/duration": "1m"})
    found = played(node("n"), claim("x"), ends)
    assert bound_to(found, "x") == "pvc-a-x"
    gone = deletion("2m", "PersistentVolumeClaim", "x")
    assert ("PersistentVolume", "pvc-a-x") not in played(node("n"), claim("x"), ends, gone)
    kept = volume("v", storageClassName="c", persistentVolumeReclaimPolicy="Retain")
    asks = claim("x", storageClassName="c")
    found = played(kept, asks, storage_class("c"), gone)
    assert found["PersistentVolume", "v"]["status"]["phase"] == "Released"


def test_the_claims_of_a_stateful_set_are_made_once_for_each_ordinal() -> None:
    template = {"metadata": {"name": "data"}, "spec": claim("t")["spec"]}
    selected = {"matchLabels": {"app": "db"}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "a"},
        "spec": {
            "replicas": 2,
            "selector": selected,
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            },
            "volumeClaimTemplates": [template],
        },
    }
    found = played(node("n"), workload)
    made = [name for kind, name in found if kind == "PersistentVolumeClaim"]
    assert made == ["data-db-0", "data-db-1"]
    assert {bound_to(found, name) for name in made} == {"pvc-a-data-db-0", "pvc-a-data-db-1"}
    assert found["PersistentVolumeClaim", "data-db-0"]["metadata"]["labels"] == {"app": "db"}
