"""Managed fields of ordinary writes: every create, update and patch is tracked."""

from typing import Any

import pytest

from tests.cluster.api.objects import (
    config_map,
    definition,
    deployment,
    lease,
    node,
    path,
    path_of,
    pod,
    thing,
    widget,
)
from tests.cluster.api.polling import eventually
from tests.cluster.api.test_server_side_apply import apply, fields, owned
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique, established


def created(api: Wire, body: Body) -> dict[str, Any]:
    """What the creator of an object owns."""
    made = api.create(body, fieldManager="maker").done(201)
    found: dict[str, Any] = owned(made)["maker/Update"]
    return found


def test_a_creator_owns_what_it_gave_and_what_was_filled_in(api: Wire, ns: str) -> None:
    body = pod(ns, "p", labels={"app": "web"}, nodeSelector={"a": "b"}, hostNetwork=False)
    (container,) = body["spec"]["containers"]
    container["env"] = [{"name": "A", "value": "1"}]
    own = fields(
        *("image", "imagePullPolicy", "name", "resources"),
        *("terminationMessagePath", "terminationMessagePolicy"),
    )
    env = {".": {}, 'k:{"name":"A"}': {".": {}, **fields("name", "value")}}
    spec = fields(
        *("dnsPolicy", "enableServiceLinks", "nodeSelector", "restartPolicy", "schedulerName"),
        *("securityContext", "terminationGracePeriodSeconds"),
    )
    key = f'k:{{"name":"{container["name"]}"}}'
    assert created(api, body) == {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {**spec, "f:containers": {key: {".": {}, **own, "f:env": env}}},
    }


def test_the_creator_of_a_deployment(api: Wire, ns: str) -> None:
    spec = created(api, deployment(ns, "d"))["f:spec"]
    rolling = {".": {}, **fields("maxSurge", "maxUnavailable")}
    assert spec["f:strategy"] == {"f:rollingUpdate": rolling, "f:type": {}}
    assert spec["f:selector"] == {}
    assert set(spec["f:template"]) == {"f:metadata", "f:spec"}


def test_the_creator_of_a_custom_object(api: Wire, ns: str) -> None:
    spec = {".": {}, **fields("colour", "replicas", "size")}
    assert created(api, widget(ns, "w")) == {"f:spec": spec}


def test_a_new_node_has_its_status_from_no_manager(api: Wire, unique: Unique) -> None:
    body = node(unique("node"))
    assert "f:status" not in created(api, body)
    status = {"status": {"conditions": [{"type": "Own", "status": "True"}]}}
    now = api.patch(path_of(body) + "/status", status, "strategic", fieldManager="agent").done()
    own = fields("type", "status", "lastHeartbeatTime", "lastTransitionTime")
    assert owned(now)["agent/Update/status"] == {
        "f:status": {"f:conditions": {'k:{"type":"Own"}': {".": {}, **own}}}
    }


def test_leases_and_events_are_tracked(api: Wire, ns: str) -> None:
    body = lease(ns, "l")
    assert created(api, body) == {"f:spec": fields("holderIdentity")}
    renewed = {"spec": {"renewTime": "2024-05-01T12:00:00.000000Z"}}
    now = api.patch(path_of(body), renewed, fieldManager="maker").done()
    assert owned(now) == {"maker/Update": {"f:spec": fields("holderIdentity", "renewTime")}}
    about = {"kind": "Pod", "namespace": ns, "name": "p"}
    event = thing("Event", ns, "e", involvedObject=about, reason="Test", type="Normal")
    made = created(api, event)
    assert {"f:involvedObject", "f:reason", "f:type"} <= set(made)


def test_an_event_is_owned_in_the_form_it_was_written_in(api: Wire, ns: str) -> None:
    where = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    event = {
        "metadata": {"name": "e", "namespace": ns},
        "regarding": {"kind": "Pod", "namespace": ns, "name": "p"},
        **{"reason": "Test", "type": "Normal", "action": "test", "note": "a"},
        "eventTime": "2024-05-01T12:00:00.000000Z",
        **{"reportingController": "suite", "reportingInstance": "one"},
    }
    made = api.post(where, event, fieldManager="maker").done(201)
    assert made["metadata"]["managedFields"][0]["apiVersion"] == "events.k8s.io/v1"
    wanted = fields(*(name for name in event if name != "metadata"))
    assert owned(made) == {"maker/Update": wanted}
    applied = {"apiVersion": "events.k8s.io/v1", "kind": "Event", **event}
    applied["metadata"] = {"name": "f", "namespace": ns}
    made = api.patch(f"{where}/f", applied, "apply", fieldManager="one").done(201)
    assert owned(made) == {"one": wanted}


def test_a_part_that_became_atomic_is_owned_as_a_whole(api: Wire, unique: Unique) -> None:
    kind = unique("Turn").replace("-", "")
    text = {"type": "object", "additionalProperties": {"type": "string"}}
    spec = {"type": "object", "properties": {"map": text}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    made = api.made(definition(f"{kind.lower()}s", kind, "Cluster", schema=schema))
    eventually(lambda: established(api, made))
    body = {"apiVersion": "suite.aliquot.dev/v1", "kind": kind, "metadata": {"name": "x"}}
    body["spec"] = {"map": {"a": "1"}}
    where = f"/apis/suite.aliquot.dev/v1/{kind.lower()}s/x"
    api.patch(where, body, "apply", fieldManager="one").done(201)
    atomic = {"x-kubernetes-map-type": "atomic"}

    def turn(now: Body) -> None:
        (version,) = now["spec"]["versions"]
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["map"] |= atomic

    api.rewrite(made, turn)

    def owner() -> Any:
        mark = unique("mark")
        now = api.patch(where, {"metadata": {"labels": {"l": mark}}}, fieldManager="two").done()
        return owned(now)["one"]

    eventually(lambda: owner() == {"f:spec": {"f:map": {}}})


def test_the_manager_is_the_client_unless_it_is_named(api: Wire, ns: str) -> None:
    headers = {**api.authorization, "User-Agent": "suite/1.0 (linux)"}
    body = config_map(ns, "c")
    where = path("ConfigMap", ns)
    made = api.call("POST", where, body, headers=headers).done(201)
    assert list(owned(made)) == ["suite/Update"]
    patched = {"data": {"b": "1"}}
    form = "application/merge-patch+json"
    now = api.call("PATCH", path_of(body), patched, content=form, headers=headers).done()
    assert owned(now) == {"suite/Update": {"f:data": {".": {}, **fields("key", "b")}}}
    now = api.patch(path_of(body), {"data": {"b": "2"}}, fieldManager="other").done()
    assert owned(now)["other/Update"] == {"f:data": fields("b")}


def test_a_manager_keeps_its_time_if_nothing_changed(api: Wire, ns: str) -> None:
    body = config_map(ns, "c")
    made = api.create(body, fieldManager="maker").done(201)
    same = {"data": dict(body["data"])}
    assert api.patch(path_of(body), same, fieldManager="other").done() == made
    assert api.put(path_of(body), made, fieldManager="other").done() == made


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_all_managers_are_forgotten_on_request(
    api: Wire, ns: str, cleared: list[dict[str, Any]]
) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    api.create(body, fieldManager="maker").done(201)
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": cleared}]
    now = api.patch(path_of(body), operations, "json").done()
    assert "managedFields" not in now["metadata"]
    now = api.patch(path_of(body), {"data": {"b": "1"}}, fieldManager="other").done()
    assert "managedFields" not in now["metadata"]
    before = {"before-first-apply/Update": {"f:data": {".": {}, **fields("b")}}}
    own = {"one": {"f:data": fields("a")}}
    wanted = config_map(ns, "c", data={"a": "2"})
    assert owned(apply(api, wanted, "one", force="true").done()) == before | own


def test_managers_can_be_written_by_hand(api: Wire, ns: str) -> None:
    """kubectl does so to take over what it applied on the client's side."""
    body = config_map(ns, "c", data={"a": "1"})
    made = api.create(body, fieldManager="maker").done(201)
    (entry,) = made["metadata"]["managedFields"]
    wanted = [{**entry, "manager": "taker", "operation": "Apply"}]
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": wanted}]
    now = api.patch(path_of(body), operations, "json").done()
    assert owned(now) == {"taker": {"f:data": {".": {}, **fields("a")}}}
    broken = [{**entry, "operation": "Guess"}]
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": broken}]
    assert owned(api.patch(path_of(body), operations, "json").done()) == owned(now)
    clear = {"metadata": {"managedFields": None}}
    assert owned(api.patch(path_of(body), clear).done()) == owned(now)


def test_many_updates_are_merged(api: Wire, ns: str) -> None:
    body = config_map(ns, "c")
    api.create(body, fieldManager="maker").done(201)
    for number in range(12):
        patch = {"data": {f"k{number}": "1"}}
        now = api.patch(path_of(body), patch, fieldManager=f"m{number:02}").done()
    assert len(owned(now)) == 10
    assert "ancient-changes/Update" in owned(now)


def test_binding_and_deleting_have_no_manager(api: Wire, ns: str) -> None:
    body = pod(ns, "p", schedulerName="suite", finalizers=["suite.aliquot.dev/keep"])
    made = api.create(body, fieldManager="maker").done(201)
    target = {"kind": "Node", "name": "none"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    api.post(path_of(body) + "/binding", binding).done(201)
    api.delete(path_of(body)).done()
    assert owned(api.again(body)) == owned(made)
    api.patch(path_of(body), {"metadata": {"finalizers": None}}).done()


def test_scaling_owns_the_replicas(api: Wire, ns: str) -> None:
    body = deployment(ns, "d")
    api.create(body, fieldManager="maker").done(201)
    wanted = {"spec": {"replicas": 4}}
    api.patch(path_of(body) + "/scale", wanted, fieldManager="scaler").done()
    now = owned(api.again(body))
    assert now["scaler/Update/scale"] == {"f:spec": fields("replicas")}
    assert "f:replicas" not in now["maker/Update"]["f:spec"]
