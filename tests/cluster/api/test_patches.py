"""Patches: JSON, merge and strategic, each by its own book."""

from typing import Any

import pytest

from tests.build.manifests import container
from tests.cluster.api.objects import config_map, deployment, node, path, path_of, pod
from tests.cluster.api.objects import widget as widget_of
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


@pytest.fixture
def plain(api: Wire, ns: str) -> Body:
    return api.made(config_map(ns, "a", data={"one": "1", "two": "2"}, labels={"x": "y"}))


@pytest.fixture
def web(api: Wire, ns: str) -> Body:
    """A deployment whose pods have two containers."""
    body = deployment(ns, "web")
    body["spec"]["template"]["spec"] = {
        "containers": [
            container("front", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
            container("back", ports=[{"containerPort": 80}]),
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd", "zone": "1"},
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    return api.made(body)


def _pods(body: Body) -> Body:
    spec: Body = body["spec"]["template"]["spec"]
    return spec


def _to_pods(**spec: Any) -> Body:
    return {"spec": {"template": {"spec": spec}}}


def test_json_patch(api: Wire, plain: Body) -> None:
    changes = [
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "replace", "path": "/data/one", "value": "eins"},
        {"op": "remove", "path": "/data/two"},
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}},
        {"op": "add", "path": "/metadata/annotations/d~1e", "value": "g"},
        {"op": "copy", "from": "/data/one", "path": "/data/copied"},
        {"op": "move", "from": "/metadata/labels/x", "path": "/metadata/labels/z"},
    ]
    done = api.patch(path_of(plain), changes, "json").done()
    assert done["data"] == {"one": "eins", "copied": "eins"}
    assert done["metadata"]["annotations"] == {"a/b": "c", "d/e": "g"}
    assert done["metadata"]["labels"] == {"z": "y"}


def test_json_patch_of_lists(api: Wire, web: Body) -> None:
    where = "/spec/template/spec/containers/0/env"
    changes = [
        {"op": "add", "path": f"{where}/-", "value": {"name": "D"}},
        {"op": "add", "path": f"{where}/0", "value": {"name": "Z"}},
        {"op": "remove", "path": f"{where}/1"},
    ]
    done = api.patch(path_of(web), changes, "json").done()
    assert [one["name"] for one in _pods(done)["containers"][0]["env"]] == ["Z", "B", "D"]


@pytest.mark.parametrize(
    "change",
    [
        {"op": "test", "path": "/data/one", "value": "other"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "add", "path": "/nowhere/deep", "value": "1"},
    ],
)
def test_a_json_patch_that_cannot_be(api: Wire, plain: Body, change: Body) -> None:
    good = {"op": "add", "path": "/data/three", "value": "3"}
    api.patch(path_of(plain), [good, change], "json").refused(422, "Invalid")
    assert api.again(plain) == plain


@pytest.mark.parametrize(
    ("form", "sent"), [("json", {"a": 1}), ("json", b"["), ("merge", b"{"), ("strategic", b"{")]
)
def test_a_patch_that_is_none(api: Wire, plain: Body, form: str, sent: Any) -> None:
    api.patch(path_of(plain), sent, form).refused(400, "BadRequest")


def test_merge_patch(api: Wire, plain: Body) -> None:
    change = {"data": {"one": None, "three": "3"}, "metadata": {"labels": None}}
    done = api.patch(path_of(plain), change).done()
    assert done["data"] == {"two": "2", "three": "3"}
    assert "labels" not in done["metadata"]


def test_merge_patch_replaces_lists(api: Wire, web: Body) -> None:
    done = api.patch(path_of(web), _to_pods(containers=[container("only")])).done()
    assert [one["name"] for one in _pods(done)["containers"]] == ["only"]


@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_a_patch_of_nothing(api: Wire, plain: Body, form: str) -> None:
    assert api.patch(path_of(plain), {}, form).done() == plain
    assert api.patch(path_of(plain), {"data": {"one": "1"}}, form).done() == plain


@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_a_patch_may_insist_on_a_version(api: Wire, plain: Body, form: str) -> None:
    version = plain["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": version}, "data": {"one": "2"}}
    api.patch(path_of(plain), change, form).done()
    change["data"]["one"] = "3"
    api.patch(path_of(plain), change, form).refused(409, "Conflict")


def test_a_patch_cannot_rename(api: Wire, plain: Body) -> None:
    answer = api.patch(path_of(plain), {"metadata": {"name": "b"}})
    assert "does not match the name on the URL" in answer.refused(400, "BadRequest")["message"]


def test_a_patch_keeps_what_is_the_servers(api: Wire, plain: Body) -> None:
    change = {"metadata": {"creationTimestamp": None, "labels": {"q": "r"}}}
    done = api.patch(path_of(plain), change).done()
    for kept in ("uid", "creationTimestamp"):
        assert done["metadata"][kept] == plain["metadata"][kept]


def test_a_patch_of_another_uid_is_refused(api: Wire, plain: Body) -> None:
    status = api.patch(path_of(plain), {"metadata": {"uid": "other"}}).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.uid"


def test_what_a_patch_makes_is_checked(api: Wire, web: Body) -> None:
    status = api.patch(path_of(web), {"spec": {"replicas": -1}}).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "spec.replicas"
    change = {"spec": {"replicas": "many"}}
    for form in ("merge", "strategic"):
        assert api.patch(path_of(web), change, form).code in (400, 422)
    assert api.again(web)["spec"] == web["spec"]


def test_strategic_containers_by_name(api: Wire, web: Body) -> None:
    change = _to_pods(containers=[{"name": "back", "image": "image.invalid/back:2"}])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    images = {one["name"]: one["image"] for one in spec["containers"]}
    assert images == {"front": "image.invalid/main:1", "back": "image.invalid/back:2"}
    assert spec["containers"][1]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_strategic_adds_a_container(api: Wire, web: Body) -> None:
    change = _to_pods(containers=[container("side")])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert {one["name"] for one in spec["containers"]} == {"front", "back", "side"}


def test_strategic_deletes_a_container(api: Wire, web: Body) -> None:
    change = _to_pods(containers=[{"name": "back", "$patch": "delete"}])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert [one["name"] for one in spec["containers"]] == ["front"]


def test_strategic_replaces_a_list(api: Wire, web: Body) -> None:
    change = _to_pods(containers=[{"$patch": "replace"}, container("only")])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert [one["name"] for one in spec["containers"]] == ["only"]


def test_strategic_replaces_a_map(api: Wire, web: Body) -> None:
    change = _to_pods(nodeSelector={"$patch": "replace", "disk": "hdd"})
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert spec["nodeSelector"] == {"disk": "hdd"}


def test_strategic_merges_deeply(api: Wire, web: Body) -> None:
    env = [
        {"name": "B", "value": "3"},
        {"name": "C", "value": "4"},
        {"name": "A", "$patch": "delete"},
    ]
    change = _to_pods(containers=[{"name": "front", "env": env}])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert {e["name"]: e["value"] for e in spec["containers"][0]["env"]} == {"B": "3", "C": "4"}


def test_strategic_orders(api: Wire, web: Body) -> None:
    change = _to_pods(
        **{"$setElementOrder/containers": [{"name": "back"}, {"name": "front"}]},
        containers=[{"name": "front", "image": "image.invalid/front:2"}],
    )
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert [one["name"] for one in spec["containers"]] == ["back", "front"]


def test_strategic_replaces_lists_without_a_key(api: Wire, web: Body) -> None:
    change = _to_pods(tolerations=[{"key": "b", "operator": "Exists"}])
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert spec["tolerations"] == [{"key": "b", "operator": "Exists"}]


def test_strategic_merges_maps(api: Wire, web: Body) -> None:
    change = _to_pods(nodeSelector={"zone": None, "gpu": "yes"})
    spec = _pods(api.patch(path_of(web), change, "strategic").done())
    assert spec["nodeSelector"] == {"disk": "ssd", "gpu": "yes"}


def test_strategic_retains_keys(api: Wire, web: Body) -> None:
    volumes = [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]
    spec = _pods(api.patch(path_of(web), _to_pods(volumes=volumes), "strategic").done())
    assert spec["volumes"] == [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}]
    change = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    done = api.patch(path_of(web), change, "strategic").done()
    assert done["spec"]["strategy"] == {"type": "Recreate"}


def test_strategic_needs_the_key(api: Wire, web: Body) -> None:
    change = _to_pods(containers=[{"image": "image.invalid/nameless:1"}])
    assert api.patch(path_of(web), change, "strategic").code >= 400
    assert api.again(web)["spec"] == web["spec"]


def test_strategic_finalizers(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "a", finalizers=["suite/one"]))
    change: Body = {"metadata": {"finalizers": ["suite/two"]}}
    done = api.patch(path_of(made), change, "strategic").done()
    assert sorted(done["metadata"]["finalizers"]) == ["suite/one", "suite/two"]
    change = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["suite/one"]}}
    done = api.patch(path_of(made), change, "strategic").done()
    assert done["metadata"]["finalizers"] == ["suite/two"]


def test_strategic_owners(api: Wire, ns: str) -> None:
    one, two, three = (_owner(api, ns, name) for name in ("one", "two", "three"))
    made = api.made(config_map(ns, "a", ownerReferences=[one, two]))
    changes = [{"uid": two["uid"], "$patch": "delete"}, three]
    change = {"metadata": {"ownerReferences": changes}}
    done = api.patch(path_of(made), change, "strategic").done()
    left = {owner["uid"] for owner in done["metadata"]["ownerReferences"]}
    assert left == {one["uid"], three["uid"]}


def _owner(api: Wire, ns: str, name: str) -> Body:
    uid = api.made(config_map(ns, name))["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}


def test_strategic_conditions_by_type(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "a"))
    for kind, value in (("Ready", "False"), ("Initialized", "True"), ("Ready", "True")):
        change = {"status": {"conditions": [{"type": kind, "status": value}]}}
        done = api.patch(path("Pod", ns, "a", "status"), change, "strategic").done()
    found = {one["type"]: one["status"] for one in done["status"]["conditions"]}
    assert found == {"Ready": "True", "Initialized": "True"}
    assert done["metadata"]["uid"] == made["metadata"]["uid"]


def test_strategic_taints_are_one_list(api: Wire, unique: Unique) -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    made = api.made(node(unique("node"), spec={"taints": taints}))
    done = api.patch(path_of(made), {"spec": {"taints": taints[1:]}}, "strategic").done()
    assert done["spec"]["taints"] == taints[1:]


def test_strategic_node_conditions(api: Wire, unique: Unique) -> None:
    made = api.made(node(unique("node")))
    change = {"status": {"conditions": [{"type": "MemoryPressure", "status": "False"}]}}
    done = api.patch(path_of(made) + "/status", change, "strategic").done()
    assert {one["type"] for one in done["status"]["conditions"]} == {"Ready", "MemoryPressure"}
    assert done["status"]["capacity"]["cpu"] == "8"


def test_strategic_is_not_for_custom_kinds(api: Wire, ns: str) -> None:
    made = api.made(widget_of(ns, "a"))
    answer = api.patch(path_of(made), {"spec": {"size": 4}}, "strategic")
    answer.refused(415, "UnsupportedMediaType")
    for form, change in (
        ("merge", {"spec": {"size": 5}}),
        ("json", [{"op": "replace", "path": "/spec/size", "value": 5}]),
    ):
        assert api.patch(path_of(made), change, form).done()["spec"]["size"] == 5
