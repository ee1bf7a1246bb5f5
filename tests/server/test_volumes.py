"""Claims and volumes on the embedded server: bound, provisioned, released, protected."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.server.app import Settings
from aliquot.server.controllers.simulated_nodes import nodes
from aliquot.server.volumes import fit, provisioner
from tests.server.client import PODS, Client, served

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

Story = Callable[[Client], Awaitable[None]]


def tell(story: Story) -> None:
    first, second = nodes("2", "none")
    first["metadata"]["labels"][ZONE] = "z1"

    async def run() -> None:
        async with served(Settings(nodes=(first, second))) as client:
            await story(client)

    asyncio.run(run())


async def post(client: Client, path: str, body: Body) -> Body:
    code, made = await client.post(path, body)
    assert code == 201, made
    found: Body = made
    return found


async def storage_class(client: Client, name: str, **more: Any) -> None:
    mode = {"volumeBindingMode": "WaitForFirstConsumer"}
    body = {"metadata": {"name": name}, "provisioner": "csi.example.com", **mode, **more}
    await post(client, CLASSES, body)


async def claim(client: Client, name: str, storage_class: str | None = "", **more: Any) -> Body:
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return await post(client, CLAIMS, {"metadata": {"name": name}, "spec": {**spec, **more}})


async def volume(client: Client, name: str, storage_class: str = "", **more: Any) -> Body:
    spec = {
        **{"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
        **{"hostPath": {"path": "/x"}, "storageClassName": storage_class, **more},
    }
    await post(client, VOLUMES, {"metadata": {"name": name}, "spec": spec})
    return await phase(client, f"{VOLUMES}/{name}", "Available")


async def phase(client: Client, path: str, wanted: str) -> Body:
    found: Body = await client.until(path, lambda _, each: each["status"].get("phase") == wanted)
    return found


async def gone(client: Client, path: str) -> None:
    await client.until(path, lambda code, _: code == 404)


async def stays(client: Client, path: str, wanted: str) -> Body:
    """A while later, an object is in this phase still."""
    await asyncio.sleep(0.3)
    code, found = await client.get(path)
    assert (code, found["status"]["phase"]) == (200, wanted)
    shown: Body = found
    return shown


async def select(client: Client, name: str, node: str) -> None:
    await client.merge(f"{CLAIMS}/{name}", {"metadata": {"annotations": {SELECTED: node}}})


def affinity(shown: Body) -> dict[str, list[str]]:
    required = shown["spec"].get("nodeAffinity", {}).get("required", {"nodeSelectorTerms": []})
    terms = required["nodeSelectorTerms"]
    return {each["key"]: each["values"] for term in terms for each in term["matchExpressions"]}


def test_a_claim_that_waits_for_a_consumer_is_bound_when_a_scheduler_has_begun_it() -> None:
    async def story(client: Client) -> None:
        await storage_class(client, "local", provisioner="kubernetes.io/no-provisioner")
        made = await claim(client, "data", "local")
        await volume(client, "pv-1", "local")
        await volume(client, "pv-2", "local")
        await stays(client, f"{CLAIMS}/data", "Pending")
        about = {word: made["metadata"][word] for word in ("namespace", "name", "uid")}
        change = {"metadata": {"annotations": {BY_CONTROLLER: "yes"}}, "spec": {"claimRef": about}}
        await client.merge(f"{VOLUMES}/pv-2", change)
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        assert bound["spec"]["volumeName"] == "pv-2"
        assert bound["metadata"]["annotations"] == {COMPLETED: "yes", BY_CONTROLLER: "yes"}
        assert bound["status"]["capacity"] == {"storage": "2Gi"}
        shown = await phase(client, f"{VOLUMES}/pv-2", "Bound")
        assert shown["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]

    tell(story)


@pytest.mark.parametrize(
    ("node", "wanted"), [("node-0", {ZONE: ["z1"]}), ("node-1", {HOST: ["node-1"]})]
)
def test_a_volume_is_provisioned_near_the_selected_node(
    node: str, wanted: dict[str, list[str]]
) -> None:
    async def story(client: Client) -> None:
        await storage_class(client, "fast")
        await claim(client, "data", "fast")
        await stays(client, f"{CLAIMS}/data", "Pending")
        assert (await client.get(VOLUMES))[1]["items"] == []
        await select(client, "data", node)
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        assert bound["metadata"]["annotations"] | {SELECTED: node} == {
            **{SELECTED: node, COMPLETED: "yes", BY_CONTROLLER: "yes"},
            "volume.kubernetes.io/storage-provisioner": "csi.example.com",
            "volume.beta.kubernetes.io/storage-provisioner": "csi.example.com",
        }
        shown = await phase(client, f"{VOLUMES}/{bound['spec']['volumeName']}", "Bound")
        assert affinity(shown) == wanted
        noted = shown["metadata"]["annotations"]
        assert noted == {"pv.kubernetes.io/provisioned-by": "csi.example.com"}
        assert shown["spec"]["persistentVolumeReclaimPolicy"] == "Delete"

    tell(story)


def test_a_drivers_topology_is_the_one_that_its_csi_node_names() -> None:
    async def story(client: Client) -> None:
        await storage_class(client, "fast")
        driver = {"name": "csi.example.com", "nodeID": "x", "topologyKeys": [HOST]}
        await post(
            client, CSI_NODES, {"metadata": {"name": "node-0"}, "spec": {"drivers": [driver]}}
        )
        await claim(client, "data", "fast")
        await select(client, "data", "node-0")
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        shown = (await client.get(f"{VOLUMES}/{bound['spec']['volumeName']}"))[1]
        assert affinity(shown) == {HOST: ["node-0"]}

    tell(story)


@pytest.mark.parametrize("node", ["node-1", "nowhere"])
def test_a_provisioner_gives_a_node_back_that_it_cannot_serve(node: str) -> None:
    async def story(client: Client) -> None:
        allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z9"]}]}]
        await storage_class(client, "fast", allowedTopologies=allowed)
        await claim(client, "data", "fast")
        await select(client, "data", node)
        await client.until(
            f"{CLAIMS}/data",
            lambda _, each: (
                "volume.kubernetes.io/storage-provisioner" in each["metadata"]["annotations"]
                and SELECTED not in each["metadata"]["annotations"]
            ),
        )
        await stays(client, f"{CLAIMS}/data", "Pending")
        await select(client, "data", "node-0")
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        shown = (await client.get(f"{VOLUMES}/{bound['spec']['volumeName']}"))[1]
        assert affinity(shown) == {ZONE: ["z1"]}

    tell(story)


def test_a_claim_has_the_smallest_volume_that_fits_and_only_an_available_one() -> None:
    async def story(client: Client) -> None:
        await volume(client, "tiny", capacity={"storage": "1Mi"})
        await volume(client, "block", volumeMode="Block")
        await volume(client, "shared", accessModes=["ReadOnlyMany"])
        await volume(client, "large", capacity={"storage": "9Gi"})
        await volume(client, "fits")
        await volume(client, "kept", claimRef={"namespace": "other", "name": "data"})
        await claim(client, "data")
        assert (await phase(client, f"{CLAIMS}/data", "Bound"))["spec"]["volumeName"] == "fits"
        await claim(client, "huge", resources={"requests": {"storage": "10Gi"}})
        await stays(client, f"{CLAIMS}/huge", "Pending")

    tell(story)


def test_a_volume_that_is_kept_for_a_claim_comes_first() -> None:
    async def story(client: Client) -> None:
        await volume(client, "fits")
        await volume(
            client,
            "kept",
            capacity={"storage": "9Gi"},
            claimRef={"namespace": "default", "name": "data"},
        )
        await claim(client, "data")
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        assert bound["spec"]["volumeName"] == "kept"
        shown = await phase(client, f"{VOLUMES}/kept", "Bound")
        assert BY_CONTROLLER not in shown["metadata"].get("annotations", {})

    tell(story)


def test_a_claim_that_names_its_volume_waits_for_that() -> None:
    async def story(client: Client) -> None:
        await volume(client, "other")
        await claim(client, "data", volumeName="mine")
        await stays(client, f"{CLAIMS}/data", "Pending")
        await post(
            client,
            VOLUMES,
            {
                "metadata": {"name": "mine"},
                "spec": {
                    **{"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
                    "hostPath": {"path": "/x"},
                },
            },
        )
        bound = await phase(client, f"{CLAIMS}/data", "Bound")
        assert BY_CONTROLLER not in bound["metadata"]["annotations"]

    tell(story)


def test_what_becomes_of_a_volume_when_its_claim_is_gone() -> None:
    async def story(client: Client) -> None:
        for name, policy in (("retained", "Retain"), ("deleted", "Delete")):
            await volume(client, name, persistentVolumeReclaimPolicy=policy)
            await claim(client, name, volumeName=name)
            await phase(client, f"{CLAIMS}/{name}", "Bound")
            await client.delete(f"{CLAIMS}/{name}")
        await phase(client, f"{VOLUMES}/retained", "Released")
        await gone(client, f"{VOLUMES}/deleted")
        await claim(client, "again")
        await stays(client, f"{CLAIMS}/again", "Pending")

    tell(story)


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async def story(client: Client) -> None:
        await volume(client, "pv")
        await claim(client, "data")
        await phase(client, f"{CLAIMS}/data", "Bound")
        await client.delete(f"{VOLUMES}/pv")
        await stays(client, f"{VOLUMES}/pv", "Bound")
        await client.merge(f"{VOLUMES}/pv", {"metadata": {"finalizers": None}})
        await gone(client, f"{VOLUMES}/pv")
        await phase(client, f"{CLAIMS}/data", "Lost")

    tell(story)


def test_a_second_volume_that_was_begun_for_a_claim_is_free_again() -> None:
    async def story(client: Client) -> None:
        await storage_class(client, "local", provisioner="kubernetes.io/no-provisioner")
        made = await claim(client, "data", "local")
        about = {word: made["metadata"][word] for word in ("namespace", "name", "uid")}
        change = {"metadata": {"annotations": {BY_CONTROLLER: "yes"}}, "spec": {"claimRef": about}}
        for name in ("pv-1", "pv-2"):
            await volume(client, name, "local")
            await client.merge(f"{VOLUMES}/{name}", change)
            await phase(client, f"{CLAIMS}/data", "Bound")
        free = await client.until(f"{VOLUMES}/pv-2", lambda _, each: "claimRef" not in each["spec"])
        assert BY_CONTROLLER not in free["metadata"].get("annotations", {})
        await phase(client, f"{VOLUMES}/pv-2", "Available")

    tell(story)


def test_a_claim_that_a_running_pod_mounts_is_not_removed() -> None:
    async def story(client: Client) -> None:
        await claim(client, "data", "standard")
        await phase(client, f"{CLAIMS}/data", "Bound")
        for name, node in (("runs", "node-0"), ("waits", "")):
            mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
            spec = {"containers": [{"name": "c", "image": "i"}], "volumes": mounts}
            spec |= {"nodeName": node} if node else {}
            await post(client, PODS, {"metadata": {"name": name}, "spec": spec})
        await phase(client, f"{PODS}/runs", "Running")
        await client.delete(f"{CLAIMS}/data")
        await stays(client, f"{CLAIMS}/data", "Bound")
        await client.delete(f"{PODS}/runs", {"gracePeriodSeconds": 0})
        await gone(client, f"{CLAIMS}/data")

    tell(story)


def test_a_pod_is_not_started_before_its_claims_are_bound() -> None:
    async def story(client: Client) -> None:
        await claim(client, "data")
        mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": mounts}
        body = {"metadata": {"name": "p"}, "spec": {**spec, "nodeName": "node-0"}}
        await post(client, PODS, body)
        await asyncio.sleep(1)
        await stays(client, f"{PODS}/p", "Pending")
        await volume(client, "pv")
        await phase(client, f"{PODS}/p", "Running")

    tell(story)


def test_a_claim_without_a_class_gets_the_newest_default_one() -> None:
    async def story(client: Client) -> None:
        assert (await claim(client, "a", None))["spec"]["storageClassName"] == "standard"
        await client.delete(f"{CLASSES}/standard")
        assert "storageClassName" not in (await claim(client, "b", None))["spec"]
        marked = {"storageclass.kubernetes.io/is-default-class": "true"}
        about = {"name": "later", "annotations": marked}
        await post(client, CLASSES, {"metadata": about, "provisioner": "csi.example.com"})
        late = await phase(client, f"{CLAIMS}/b", "Bound")
        assert late["spec"]["storageClassName"] == "later"

    tell(story)


def test_a_pod_brings_the_claims_of_its_ephemeral_volumes_and_takes_them_along() -> None:
    async def story(client: Client) -> None:
        await claim(client, "p-theirs")
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        template = {"metadata": {"labels": {"app": "x"}}, "spec": asked}
        volumes = [
            {"name": name, "ephemeral": {"volumeClaimTemplate": template}}
            for name in ("scratch", "theirs")
        ]
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        pod = await post(client, PODS, {"metadata": {"name": "p"}, "spec": spec})
        made = await client.until(f"{CLAIMS}/p-scratch", lambda code, _: code == 200)
        assert made["metadata"]["labels"] == {"app": "x"}
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (pod["metadata"]["uid"], True)
        bound = await phase(client, f"{CLAIMS}/p-scratch", "Bound")
        await client.delete(f"{PODS}/p")
        await gone(client, f"{CLAIMS}/p-scratch")
        await gone(client, f"{VOLUMES}/{bound['spec']['volumeName']}")
        theirs = (await client.get(f"{CLAIMS}/p-theirs"))[1]
        assert "ownerReferences" not in theirs["metadata"]

    tell(story)


def _claim_of(**spec: Any) -> Body:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    return {"metadata": about, "spec": {"storageClassName": "s", **asked, **spec}}


def _volume_of(name: str = "v", **spec: Any) -> Body:
    has = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name, "labels": {"disk": name}},
        "spec": {"storageClassName": "s", **has, **spec},
        "status": {"phase": "Available"},
    }


def test_a_claims_selector_chooses_among_free_volumes_only() -> None:
    asks = _claim_of(selector={"matchLabels": {"disk": "b"}})
    found = fit.best(asks, [_volume_of("a"), _volume_of("b")], only_kept=False)
    assert found is not None
    assert found["metadata"]["name"] == "b"
    kept = _volume_of("a", claimRef={"namespace": "n", "name": "c"})
    assert fit.best(asks, [kept, _volume_of("b")], only_kept=False) == kept
    assert fit.best(asks, [_volume_of("b")], only_kept=True) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"claimRef": {"namespace": "n", "name": "c", "uid": "another"}},
        {"storageClassName": "t"},
        {"capacity": {"storage": "1Mi"}},
        {"volumeMode": "Block"},
        {"accessModes": ["ReadOnlyMany"]},
    ],
)
def test_what_does_not_fit(spec: Body) -> None:
    assert fit.best(_claim_of(), [_volume_of()], only_kept=False) is not None
    assert fit.best(_claim_of(), [_volume_of(**spec)], only_kept=False) is None


def test_a_volume_without_a_node_is_restricted_as_its_class_is() -> None:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
    made_by = {"provisioner": "x", "allowedTopologies": terms}
    reachable = provisioner.topology_without_node(made_by)
    assert affinity(provisioner.volume(_claim_of(), made_by, reachable)) == {ZONE: ["a", "b"]}
    assert provisioner.topology(made_by, {ZONE: "b"}, ()) == {ZONE: ("b",)}
    assert provisioner.topology(made_by, {ZONE: "c"}, ()) is None
