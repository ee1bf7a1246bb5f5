"""Objects come, are read, change and go, and the server keeps its part of their metadata."""

import re
from datetime import UTC, datetime

import pytest

from tests.build.manifests import priority_class
from tests.cluster.api.objects import (
    Make,
    budget,
    config_map,
    deployment,
    lease,
    node,
    path,
    path_of,
    pod,
    resource_quota,
    thing,
    widget,
)
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique

_KINDS: dict[str, Make] = {
    "ConfigMap": config_map,
    "Deployment": deployment,
    "Gadget": lambda _, name: thing("Gadget", "", name, spec={"a": 1}),
    "Lease": lease,
    "Node": lambda _, name: node(name),
    "Pod": pod,
    "PodDisruptionBudget": lambda ns, name: budget(ns, name, minAvailable=1),
    "PriorityClass": lambda _, name: priority_class(name, 7),
    "ReplicaSet": lambda ns, name: deployment(ns, name, "ReplicaSet"),
    "ResourceQuota": lambda ns, name: resource_quota(ns, name, pods="3"),
    "Secret": lambda ns, name: thing("Secret", ns, name, data={"a": "YQ=="}),
    "ServiceAccount": lambda ns, name: thing("ServiceAccount", ns, name),
    "Widget": widget,
}
_CONTROLLED = {"Deployment", "PodDisruptionBudget", "ReplicaSet", "ResourceQuota"}
_SHOWN_WHEN_DELETED = {"Pod", "ResourceQuota", "ServiceAccount"}


@pytest.fixture(params=sorted(_KINDS))
def one(request: pytest.FixtureRequest, ns: str, unique: Unique) -> Body:
    """An object of every kind in turn, not sent yet."""
    return _KINDS[request.param](ns, unique("one"))


def _own(body: Body) -> Body:
    """An object without what a controller, if there is one, writes into it meanwhile."""
    if body["kind"] not in _CONTROLLED:
        return body
    theirs = ("resourceVersion", "annotations", "managedFields")
    meta = {key: value for key, value in body["metadata"].items() if key not in theirs}
    return {**{key: body[key] for key in body if key != "status"}, "metadata": meta}


def test_what_is_made_is_read_and_listed(api: Wire, one: Body) -> None:
    made = api.made(one)
    assert (made["kind"], made["apiVersion"]) == (one["kind"], one["apiVersion"])
    assert _own(api.again(one)) == _own(made)
    listed = api.get(path_of(one, named=False)).done()
    assert listed["kind"] == f"{one['kind']}List"
    assert listed["apiVersion"] == one["apiVersion"]
    assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
    (found,) = [i for i in listed["items"] if i["metadata"]["name"] == one["metadata"]["name"]]
    listed_one = {"kind": made["kind"], "apiVersion": made["apiVersion"], **found}
    assert _own(listed_one) == _own(made)


def test_a_new_object_gets_uid_time_and_version(api: Wire, one: Body) -> None:
    one["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    meta = api.made(one)["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    age = datetime.now(UTC) - datetime.strptime(meta["creationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
    assert -2 < age.total_seconds() < 30
    assert int(meta["resourceVersion"]) > 0
    assert meta.get("namespace") == one["metadata"].get("namespace")


def test_a_change_gives_a_new_version_and_keeps_the_rest(api: Wire, one: Body) -> None:
    api.made(one)
    before, after = api.rewrite(one, lambda body: _label(body, {"a": "b"}))
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    for kept in ("uid", "creationTimestamp", "name"):
        assert after["metadata"][kept] == before["metadata"][kept]
    assert after["metadata"]["labels"]["a"] == "b"
    assert _own(api.again(one)) == _own(after)


def _label(body: Body, labels: dict[str, str]) -> None:
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **labels}


def test_a_change_of_nothing_is_none(api: Wire, one: Body) -> None:
    api.made(one)
    before, after = api.rewrite(one, lambda _: None)
    assert after == before


def test_a_stale_change_is_refused(api: Wire, one: Body) -> None:
    stale = api.made(one)
    api.patch(path_of(one), {"metadata": {"labels": {"a": "b"}}}).done()
    status = api.put(path_of(one), stale).refused(409, "Conflict")
    name = one["metadata"]["name"]
    group, _, _ = one["apiVersion"].rpartition("/")
    plural = path_of(one).split("/")[-2]
    assert status["details"] == {"name": name, "kind": plural} | ({"group": group} if group else {})
    assert status["message"] == (
        f'Operation cannot be fulfilled on {plural}{"." + group if group else ""} "{name}": the'
        " object has been modified; please apply your changes to the latest version and try again"
    )


def test_what_is_deleted_is_gone(api: Wire, one: Body) -> None:
    uid = api.made(one)["metadata"]["uid"]
    said = api.delete(path_of(one)).done()
    if one["kind"] in _SHOWN_WHEN_DELETED:
        assert (said["kind"], said["metadata"]["uid"]) == (one["kind"], uid)
    else:
        assert (said["kind"], said["status"]) == ("Status", "Success")
        assert said["details"]["name"] == one["metadata"]["name"]
        assert said["details"]["kind"] == path_of(one).split("/")[-2]
        assert said["details"]["uid"] == uid
    api.get(path_of(one)).refused(404, "NotFound")
    api.delete(path_of(one)).refused(404, "NotFound")


def test_a_second_of_the_same_name_is_refused(api: Wire, one: Body) -> None:
    api.made(one)
    status = api.create(one).refused(409, "AlreadyExists")
    name, plural = one["metadata"]["name"], path_of(one).split("/")[-2]
    assert (status["details"]["name"], status["details"]["kind"]) == (name, plural)
    assert status["message"].endswith(f'"{name}" already exists')


def test_one_of_the_same_name_after_it_is_another(api: Wire, one: Body) -> None:
    first = api.made(one)["metadata"]
    api.delete(path_of(one)).done()
    second = api.made(one)["metadata"]
    assert first["uid"] != second["uid"]
    assert int(first["resourceVersion"]) < int(second["resourceVersion"])


def test_a_name_is_made_up(api: Wire, ns: str) -> None:
    body = pod(ns, "")
    body["metadata"] = {"generateName": "worker-", "namespace": ns}
    names = {api.made(body)["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    for name in names:
        assert re.fullmatch(r"worker-[bcdfghjklmnpqrstvwxz2456789]{5}", name)


def test_a_name_that_is_given_is_kept(api: Wire, ns: str) -> None:
    body = config_map(ns, "given")
    body["metadata"]["generateName"] = "other-"
    meta = api.made(body)["metadata"]
    assert (meta["name"], meta["generateName"]) == ("given", "other-")


def test_a_long_made_up_name_still_fits(api: Wire, ns: str) -> None:
    body = config_map(ns, "")
    body["metadata"] = {"generateName": "a" * 70 + "-", "namespace": ns}
    assert len(api.made(body)["metadata"]["name"]) == 63


def test_the_namespace_is_the_one_of_the_path(api: Wire, ns: str) -> None:
    body = {**config_map(ns, "here"), "metadata": {"name": "here"}}
    assert api.post(path("ConfigMap", ns), body).done(201)["metadata"]["namespace"] == ns
    other = config_map("elsewhere", "there")
    status = api.post(path("ConfigMap", ns), other).refused(400, "BadRequest")
    assert "the namespace of the provided object does not match" in status["message"]
    api.put(path("ConfigMap", ns, "there"), other).refused(400, "BadRequest")


def test_kind_and_version_may_be_left_out(api: Wire, ns: str) -> None:
    made = api.post(path("ConfigMap", ns), {"metadata": {"name": "plain"}}).done(201)
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


def test_items_of_a_list_leave_kind_and_version_out(api: Wire, ns: str) -> None:
    api.made(config_map(ns, "a"))
    (item,) = api.get(path("ConfigMap", ns)).done()["items"]
    assert "kind" not in item
    assert "apiVersion" not in item


def test_items_of_custom_kinds_carry_kind_and_version(api: Wire, ns: str) -> None:
    api.made(widget(ns, "a"))
    (item,) = api.get(path("Widget", ns)).done()["items"]
    assert (item["kind"], item["apiVersion"]) == ("Widget", "suite.aliquot.dev/v1")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_the_generation_counts_changes_of_the_spec(api: Wire, ns: str, kind: str) -> None:
    body = deployment(ns, "counted", kind)
    assert api.made(body)["metadata"]["generation"] == 1
    labelled = api.patch(path_of(body), {"metadata": {"labels": {"a": "b"}}}).done()
    assert labelled["metadata"]["generation"] == 1
    scaled = api.patch(path_of(body), {"spec": {"replicas": 5}}).done()
    assert scaled["metadata"]["generation"] == 2
    told = api.patch(path_of(body) + "/status", {"status": {"observedGeneration": 2}}).done()
    assert told["metadata"]["generation"] == 2


def test_kinds_without_a_spec_have_no_generation(api: Wire, ns: str) -> None:
    assert "generation" not in api.made(config_map(ns, "plain"))["metadata"]


def test_versions_grow_across_kinds(api: Wire, ns: str) -> None:
    bodies = [config_map(ns, "a"), pod(ns, "b"), lease(ns, "c"), widget(ns, "d")]
    versions = [int(api.made(body)["metadata"]["resourceVersion"]) for body in bodies]
    assert versions == sorted(set(versions))


def test_a_change_without_a_version_overwrites(api: Wire, ns: str) -> None:
    body = config_map(ns, "free")
    api.made(body)
    assert api.put(path_of(body), {**body, "data": {"a": "1"}}).done()["data"] == {"a": "1"}
    assert api.put(path_of(body), {**body, "data": {"b": "2"}}).done()["data"] == {"b": "2"}


@pytest.mark.parametrize("make", [lease, widget], ids=["Lease", "Widget"])
def test_some_kinds_are_never_changed_without_a_version(api: Wire, ns: str, make: Make) -> None:
    sent = make(ns, "strict")
    api.made(sent)
    status = api.put(path_of(sent), sent).refused(422, "Invalid")
    (cause,) = status["details"]["causes"]
    assert cause["field"] == "metadata.resourceVersion"
    assert cause["message"].endswith("must be specified for an update")


def test_a_change_of_another_uid_is_refused(api: Wire, ns: str) -> None:
    body = config_map(ns, "one")
    api.made(body)
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    status = api.put(path_of(body), body).refused(409, "Conflict")
    assert "Precondition failed: UID in precondition" in status["message"]


def test_what_does_not_exist_is_not_changed(api: Wire, ns: str) -> None:
    status = api.put(path("Pod", ns, "nobody"), pod(ns, "nobody")).refused(404, "NotFound")
    assert status["message"] == 'pods "nobody" not found'
    api.patch(path("Pod", ns, "nobody"), {"metadata": {}}).refused(404, "NotFound")


def test_the_name_is_the_one_of_the_path(api: Wire, ns: str) -> None:
    body = config_map(ns, "one")
    api.made(body)
    renamed = {**body, "metadata": {**body["metadata"], "name": "two"}}
    status = api.put(path_of(body), renamed).refused(400, "BadRequest")
    assert status["message"] == (
        "the name of the object (two) does not match the name on the URL (one)"
    )


def test_a_version_on_a_new_object_is_refused(api: Wire, ns: str) -> None:
    body = config_map(ns, "one")
    body["metadata"]["resourceVersion"] = "5"
    answer = api.create(body)
    assert answer.code >= 400
    assert answer.body["message"] == "resourceVersion should not be set on objects to be created"
    assert api.gone(body)


def test_a_dry_run_changes_nothing(api: Wire, ns: str) -> None:
    body = config_map(ns, "one")
    assert api.create(body, dryRun="All").done(201)["metadata"]["uid"]
    assert api.gone(body)
    made = api.made(body)
    tried = api.patch(path_of(body), {"data": {"key": "other"}}, dryRun="All").done()
    assert tried["data"] == {"key": "other"}
    api.delete(path_of(body), dryRun="All").done()
    assert api.again(body) == made


def test_words_of_a_dry_run_are_checked(api: Wire, ns: str) -> None:
    answer = api.create(config_map(ns, "one"), dryRun="Maybe")
    assert answer.refused(422, "Invalid")["details"]["causes"][0]["field"] == "dryRun"


def test_owners_are_kept(api: Wire, ns: str) -> None:
    owner = api.made(config_map(ns, "owner"))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = api.made(config_map(ns, "owned", ownerReferences=[reference]))
    assert made["metadata"]["ownerReferences"] == [reference]


def test_only_one_owner_is_in_charge(api: Wire, ns: str) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True}
        for n in ("a", "b")
    ]
    status = api.create(config_map(ns, "owned", ownerReferences=owners)).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.ownerReferences"
