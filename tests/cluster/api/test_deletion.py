"""Deletion: grace, finalizers, preconditions, what happens to dependents, whole collections."""

import pytest

from tests.cluster.api.objects import (
    config_map,
    delete_options,
    deployment,
    job,
    path,
    path_of,
    pod,
    widget,
)
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Body, Wire


@pytest.fixture
def placed(api: Wire, ns: str) -> Body:
    """A pod on a node, with a while to end in."""
    return api.made(pod(ns, "placed", nodeName="n1", terminationGracePeriodSeconds=20))


def test_a_pod_on_a_node_is_asked_to_end(api: Wire, placed: Body) -> None:
    said = api.delete(path_of(placed)).done()
    assert said["kind"] == "Pod"
    assert said["metadata"]["deletionTimestamp"]
    assert said["metadata"]["deletionGracePeriodSeconds"] == 20
    again = api.again(placed)
    assert again["metadata"]["deletionTimestamp"] == said["metadata"]["deletionTimestamp"]
    assert int(again["metadata"]["resourceVersion"]) > int(placed["metadata"]["resourceVersion"])


def test_the_time_of_deletion_is_when_grace_ends(api: Wire, placed: Body) -> None:
    meta = api.delete(path_of(placed), gracePeriodSeconds=3600).done()["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 3600
    assert meta["deletionTimestamp"] > placed["metadata"]["creationTimestamp"][:-6]
    assert meta["deletionTimestamp"] != placed["metadata"]["creationTimestamp"]


def test_grace_can_shrink_but_not_grow(api: Wire, placed: Body) -> None:
    api.delete(path_of(placed)).done()
    for asked, left in ((5, 5), (60, 5)):
        api.delete(path_of(placed), gracePeriodSeconds=asked).done()
        assert api.again(placed)["metadata"]["deletionGracePeriodSeconds"] == left


@pytest.mark.parametrize("how", ["query", "body", "plain body"])
def test_no_grace_at_all(api: Wire, placed: Body, how: str) -> None:
    if how == "query":
        api.delete(path_of(placed), gracePeriodSeconds=0).done()
    else:
        options = {"gracePeriodSeconds": 0}
        api.delete(path_of(placed), options if "plain" in how else delete_options(**options)).done()
    assert api.gone(placed)


def test_a_pod_without_a_node_goes_at_once(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "waiting"))
    api.delete(path_of(made)).done()
    assert api.gone(made)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_goes_at_once(api: Wire, placed: Body, phase: str) -> None:
    api.patch(path_of(placed) + "/status", {"status": {"phase": phase}}).done()
    api.delete(path_of(placed)).done()
    assert api.gone(placed)


def test_a_finalizer_holds_an_object(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "held", finalizers=["suite/hold"]))
    said = api.delete(path_of(made)).done()
    assert said["metadata"]["deletionTimestamp"]
    held = api.again(made)
    assert held["metadata"]["finalizers"] == ["suite/hold"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    api.delete(path_of(made)).done()
    assert api.again(made)["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    done = api.patch(path_of(made), {"metadata": {"finalizers": None}}).done()
    assert done["metadata"]["name"] == "held"
    assert api.gone(made)


def test_the_last_of_two_finalizers_lets_go(api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "held") | {})
    change = {"metadata": {"finalizers": ["suite/a", "suite/b"]}}
    api.patch(path_of(made), change).done()
    api.delete(path_of(made)).done()
    api.patch(path_of(made), {"metadata": {"finalizers": ["suite/b"]}}).done()
    held = api.again(made)
    assert held["metadata"]["finalizers"] == ["suite/b"]
    held["metadata"]["finalizers"] = []
    api.put(path_of(made), held).done()
    assert api.gone(made)


def test_no_finalizer_comes_too_late(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "held", finalizers=["suite/hold"]))
    api.delete(path_of(made)).done()
    change = {"metadata": {"finalizers": ["suite/hold", "suite/late"]}}
    status = api.patch(path_of(made), change).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.finalizers"
    assert "no new finalizers can be added" in status["message"]


def test_what_is_held_can_still_change_but_not_come_back(api: Wire, ns: str) -> None:
    made = api.made(config_map(ns, "held", finalizers=["suite/hold"]))
    api.delete(path_of(made)).done()
    change = {"metadata": {"deletionTimestamp": None}, "data": {"key": "new"}}
    done = api.patch(path_of(made), change).done()
    assert done["data"] == {"key": "new"}
    assert done["metadata"]["deletionTimestamp"]
    api.create(config_map(ns, "held")).refused(409, "AlreadyExists")


def test_a_finalizer_holds_a_pod_past_its_grace(api: Wire, ns: str) -> None:
    made = api.made(pod(ns, "held", nodeName="n1", finalizers=["suite/hold"]))
    api.delete(path_of(made), gracePeriodSeconds=0).done()
    assert api.again(made)["metadata"]["deletionGracePeriodSeconds"] == 0
    api.patch(path_of(made), {"metadata": {"finalizers": None}}).done()
    assert api.gone(made)


def test_a_new_object_is_not_on_its_way_out(api: Wire, ns: str) -> None:
    body = config_map(ns, "a")
    body["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z"
    assert "deletionTimestamp" not in api.made(body)["metadata"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Pod", "Widget"])
def test_preconditions(api: Wire, ns: str, kind: str) -> None:
    made = api.made({"ConfigMap": config_map, "Pod": pod, "Widget": widget}[kind](ns, "a"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}, {"uid": uid, "resourceVersion": "1"}):
        status = api.delete(path_of(made), delete_options(preconditions=wrong))
        assert status.refused(409, "Conflict")["details"]["name"] == "a"
    right = delete_options(preconditions={"uid": uid, "resourceVersion": version})
    api.delete(path_of(made), right).done()
    assert api.gone(made)


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")]
)
def test_dependents_are_left_to_a_finalizer(
    api: Wire, ns: str, policy: str, finalizer: str
) -> None:
    made = api.made(deployment(ns, "owner"))
    dependent = _owned(ns, made, blockOwnerDeletion=True)
    api.made(dependent)
    said = api.delete(path_of(made), propagationPolicy=policy).done()
    assert said["metadata"]["finalizers"] == [finalizer]
    assert said["metadata"]["deletionTimestamp"]
    assert said["metadata"]["deletionGracePeriodSeconds"] == 0


def test_jobs_leave_their_pods_behind_by_an_old_custom(api: Wire, ns: str) -> None:
    made = api.made(job(ns, "owner"))
    said = api.delete(path_of(made)).done()
    assert said["metadata"]["finalizers"] == ["orphan"]
    api.delete(path_of(api.made(job(ns, "other"))), propagationPolicy="Background").done()
    assert api.gone(job(ns, "other"))


def test_background_deletion_leaves_no_finalizer(api: Wire, ns: str) -> None:
    made = api.made(deployment(ns, "owner"))
    api.delete(path_of(made), delete_options(propagationPolicy="Background")).done()
    assert api.gone(made)


@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": "Sideways"},
        {"propagationPolicy": "Orphan", "orphanDependents": True},
    ],
)
def test_a_policy_that_makes_no_sense(api: Wire, ns: str, options: Body) -> None:
    made = api.made(config_map(ns, "a"))
    api.delete(path_of(made), delete_options(**options)).refused(422, "Invalid")


def _owned(ns: str, owner: Body, **more: bool) -> Body:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return config_map(ns, "owned", ownerReferences=[reference])


@pytest.mark.needs_controller("the garbage collector deletes what has lost its owner")
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_follow_their_owner(api: Wire, ns: str, policy: str) -> None:
    owner = api.made(deployment(ns, "owner", "ReplicaSet"))
    owned = api.made(_owned(ns, owner, blockOwnerDeletion=True))
    api.delete(path_of(owner), propagationPolicy=policy).done()
    eventually(lambda: api.gone(owned) and api.gone(owner))


@pytest.mark.needs_controller("the garbage collector takes the owner's name off its orphans")
def test_orphans_stay(api: Wire, ns: str) -> None:
    owner = api.made(deployment(ns, "owner", "ReplicaSet"))
    owned = api.made(_owned(ns, owner))
    api.delete(path_of(owner), propagationPolicy="Orphan").done()
    eventually(lambda: api.gone(owner))
    assert "ownerReferences" not in api.again(owned)["metadata"]


def test_a_whole_collection(api: Wire, ns: str) -> None:
    for name in "abc":
        api.made(config_map(ns, name))
    said = api.delete(path("ConfigMap", ns)).done()
    assert said["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in said["items"]] == ["a", "b", "c"]
    assert api.get(path("ConfigMap", ns)).done()["items"] == []


def test_a_part_of_a_collection(api: Wire, ns: str) -> None:
    for name in "abcd":
        labels = {"go": "yes"} if name in "abc" else {}
        api.made(pod(ns, name, labels=labels, nodeName="n1"))
    query = {"labelSelector": "go=yes", "fieldSelector": "metadata.name!=b"}
    api.delete(path("Pod", ns), delete_options(gracePeriodSeconds=0), **query).done()
    left = [item["metadata"]["name"] for item in api.get(path("Pod", ns)).done()["items"]]
    assert left == ["b", "d"]


def test_a_collection_with_grace_and_finalizers(api: Wire, ns: str) -> None:
    api.made(pod(ns, "graceful", nodeName="n1"))
    api.made(pod(ns, "held", finalizers=["suite/hold"]))
    api.made(pod(ns, "quick"))
    api.delete(path("Pod", ns)).done()
    left = api.get(path("Pod", ns)).done()["items"]
    assert [item["metadata"]["name"] for item in left] == ["graceful", "held"]
    assert all(item["metadata"]["deletionTimestamp"] for item in left)


def test_a_collection_of_custom_kinds(api: Wire, ns: str) -> None:
    for name in "ab":
        api.made(widget(ns, name))
    api.delete(path("Widget", ns), fieldSelector="metadata.name=a").done()
    assert [w["metadata"]["name"] for w in api.get(path("Widget", ns)).done()["items"]] == ["b"]
