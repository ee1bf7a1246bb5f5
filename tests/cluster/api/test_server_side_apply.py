"""Server-side apply: who owns which field, conflicts, and what goes when its owner lets it go."""

import copy
from typing import Any

import pytest

from tests.cluster.api.objects import (
    config_map,
    definition,
    deployment,
    node,
    path_of,
    pod,
    widget,
)
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Answer, Body, Wire
from tests.cluster.conftest import Unique, established


def apply(api: Wire, body: Body, manager: str, *, status: bool = False, **query: Any) -> Answer:
    """Apply an object by one manager."""
    where = path_of(body) + ("/status" if status else "")
    return api.patch(where, body, "apply", fieldManager=manager, **query)


def owned(body: Body) -> dict[str, Any]:
    """What each manager owns; appliers by name, all others by name and operation."""
    found = {}
    for each in body["metadata"].get("managedFields", ()):
        words = [each["manager"], each["operation"], each.get("subresource", "")]
        found["/".join(filter(None, words)).removesuffix("/Apply")] = each["fieldsV1"]
    return found


def fields(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


def test_an_object_is_created_by_applying_it(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    made = apply(api, body, "one").done(201)
    assert made["data"] == {"a": "1"}
    (entry,) = copy.deepcopy(made["metadata"]["managedFields"])
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": fields("a")},
    }
    assert apply(api, body, "one").done() == made


def test_what_is_no_longer_applied_goes(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1", "b": "1"})
    apply(api, body, "one").done(201)
    body["data"] = {"b": "1", "c": "1"}
    now = apply(api, body, "one").done()
    assert now["data"] == {"b": "1", "c": "1"}
    assert owned(now) == {"one": {"f:data": fields("b", "c")}}


def test_a_field_goes_with_its_last_owner(api: Wire, ns: str) -> None:
    both, less = (
        config_map(ns, "c", data={"a": "1", "b": "1"}),
        config_map(ns, "c", data={"b": "1"}),
    )
    apply(api, both, "one").done(201)
    apply(api, both, "two").done()
    assert apply(api, less, "one").done()["data"] == {"a": "1", "b": "1"}
    assert apply(api, less, "two").done()["data"] == {"b": "1"}


def test_a_manager_that_changes_nothing_gets_no_time(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    apply(api, body, "one").done(201)
    second, first = apply(api, body, "two").done()["metadata"]["managedFields"]
    assert (second["manager"], first["manager"]) == ("two", "one")
    assert "time" not in second


def test_another_value_is_a_conflict(api: Wire, ns: str) -> None:
    apply(api, config_map(ns, "c", data={"a": "1", "b": "1"}), "one").done(201)
    wanted = config_map(ns, "c", data={"a": "2", "b": "1"})
    status = apply(api, wanted, "two").refused(409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    assert status["details"] == {"causes": [cause]}
    assert api.again(wanted)["data"]["a"] == "1"


def test_several_conflicts_are_listed_by_manager(api: Wire, ns: str) -> None:
    apply(api, config_map(ns, "c", data={"a": "1"}), "one").done(201)
    patch = {"data": {"b": "1"}, "metadata": {"labels": {"l": "1"}}}
    api.patch(path_of(config_map(ns, "c")), patch, fieldManager="patcher").done()
    wanted = config_map(ns, "c", data={"a": "2", "b": "2"}, labels={"l": "2"})
    message = apply(api, wanted, "two").refused(409, "Conflict")["message"]
    assert message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.a\n'
        'conflicts with "patcher" using v1:\n- .data.b\n- .metadata.labels.l'
    )


def test_force_takes_the_field(api: Wire, ns: str) -> None:
    apply(api, config_map(ns, "c", data={"a": "1", "b": "1"}), "one").done(201)
    now = apply(api, config_map(ns, "c", data={"a": "2"}), "two", force="true").done()
    assert now["data"] == {"a": "2", "b": "1"}
    assert owned(now) == {"one": {"f:data": fields("b")}, "two": {"f:data": fields("a")}}


def test_updates_take_fields_from_appliers(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1", "b": "1"})
    apply(api, body, "one").done(201)
    now = api.patch(path_of(body), {"data": {"a": "2"}}, fieldManager="patcher").done()
    assert owned(now) == {"one": {"f:data": fields("b")}, "patcher/Update": {"f:data": fields("a")}}
    now["data"].pop("a")
    assert owned(api.put(path_of(body), now, fieldManager="writer").done()) == {
        "one": {"f:data": fields("b")}
    }


def test_lists_by_keys_are_merged_item_by_item(api: Wire, ns: str) -> None:
    body = deployment(ns, "d")
    (container,) = body["spec"]["template"]["spec"]["containers"]
    container |= {"env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}
    apply(api, body, "one").done(201)
    other = copy.deepcopy(body)
    other["spec"]["template"]["spec"]["containers"] = [
        {"name": "side", "image": "image.invalid/side:1"},
        {"name": container["name"], "env": [{"name": "B", "value": "2"}]},
    ]
    now = apply(api, other, "two").done()
    side, main = now["spec"]["template"]["spec"]["containers"]
    assert side["name"] == "side"
    assert [each["name"] for each in main["env"]] == ["A", "B"]
    mine = owned(now)["one"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    (key,) = mine
    assert key == f'k:{{"name":"{container["name"]}"}}'
    port: Body = {".": {}, "f:containerPort": {}}
    assert mine[key]["f:ports"] == {'k:{"containerPort":80,"protocol":"TCP"}': port}
    assert mine[key]["f:env"] == {'k:{"name":"A"}': {".": {}, **fields("name", "value")}}
    now = apply(api, body, "two").done()
    assert [each["name"] for each in now["spec"]["template"]["spec"]["containers"]] == [
        container["name"]
    ]


def test_atomic_parts_have_one_owner(api: Wire, ns: str) -> None:
    taints = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    body = pod(ns, "p", nodeSelector={"a": "1"}, tolerations=taints)
    made = apply(api, body, "one").done(201)
    spec = owned(made)["one"]["f:spec"]
    assert (spec["f:nodeSelector"], spec["f:tolerations"]) == ({}, {})
    body = deployment(ns, "d")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"a": "1"}
    apply(api, body, "one").done(201)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"a": "1", "b": "2"}
    cause = ".spec.template.spec.nodeSelector"
    assert cause in apply(api, body, "two").refused(409, "Conflict")["message"]


def test_sets_are_owned_item_by_item(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", finalizers=["suite.aliquot.dev/a"])
    apply(api, body, "one").done(201)
    body["metadata"]["finalizers"] = ["suite.aliquot.dev/b"]
    now = apply(api, body, "two").done()
    assert sorted(now["metadata"]["finalizers"]) == ["suite.aliquot.dev/a", "suite.aliquot.dev/b"]
    held = owned(now)["two"]["f:metadata"]["f:finalizers"]
    assert held == {'v:"suite.aliquot.dev/b"': {}}
    body["metadata"].pop("finalizers")
    assert apply(api, body, "two").done()["metadata"]["finalizers"] == ["suite.aliquot.dev/a"]
    assert "finalizers" not in apply(api, body, "one").done()["metadata"]


def test_the_status_is_applied_by_itself(api: Wire, unique: Unique) -> None:
    body = node(unique("node"))
    del body["status"], body["metadata"]["labels"]
    apply(api, body, "one").done(201)
    ready = {"type": "Ready", "status": "True"}
    body["status"] = {"conditions": [ready], "capacity": {"cpu": "1"}}
    assert "f:status" not in owned(apply(api, body, "one").done())["one"]
    now = apply(api, body, "one", status=True).done()
    condition = {'k:{"type":"Ready"}': {".": {}, **fields("type", "status")}}
    assert owned(now)["one/Apply/status"] == {
        "f:status": {"f:conditions": condition, "f:capacity": fields("cpu")}
    }
    body["status"] = {"conditions": [{"type": "Disk", "status": "True"}]}
    now = apply(api, body, "two", status=True).done()
    assert {each["type"] for each in now["status"]["conditions"]} == {"Ready", "Disk"}


def test_a_dry_run_applies_nothing(api: Wire, ns: str) -> None:
    body = config_map(ns, "c", data={"a": "1"})
    assert apply(api, body, "one", dryRun="All").done(201)["data"] == {"a": "1"}
    assert api.gone(body)
    apply(api, body, "one").done(201)
    body["data"] = {"a": "2"}
    assert apply(api, body, "one", dryRun="All").done()["data"] == {"a": "2"}
    assert api.again(body)["data"] == {"a": "1"}


def test_yaml_is_applied(api: Wire, ns: str) -> None:
    text = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {ns}}}\ndata: {{a: b}}\n"
    )
    where = path_of(config_map(ns, "c"))
    form = "application/apply-patch+yaml"
    made = api.call("PATCH", where, text.encode(), content=form, fieldManager="one").done(201)
    assert made["data"] == {"a": "b"}


OPTIONS = "PatchOptions.meta.k8s.io"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "fieldManager: Required value: is required for apply patch"),
        ({"fieldManager": "m" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        (
            {"fieldManager": "a\n"},
            'fieldManager: Invalid value: "a\\n": invalid character U+000A (at position 1)',
        ),
    ],
)
def test_the_options_of_an_apply(api: Wire, ns: str, query: dict[str, str], message: str) -> None:
    body = config_map(ns, "c")
    status = api.patch(path_of(body), body, "apply", **query).refused(422, "Invalid")
    assert status["message"] == f'{OPTIONS} "" is invalid: {message}'


def test_only_an_apply_is_forced(api: Wire, ns: str) -> None:
    body = api.made(config_map(ns, "c"))
    status = api.patch(path_of(body), {}, force="true").refused(422, "Invalid")
    wanted = "force: Forbidden: may not be specified for non-apply patch"
    assert status["message"] == f'{OPTIONS} "" is invalid: {wanted}'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, "invalid object type: /v1, Kind="),
        ({"apiVersion": None}, "invalid object type: /, Kind=ConfigMap"),
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        (
            {"metadata": {"name": "d"}},
            "the name of the object (d) does not match the name on the URL (c)",
        ),
        ({"metadata": {"name": "c", "managedFields": []}}, "metadata.managedFields must be nil"),
        ({"metadata": {"name": "c", "managedFields": [{}]}}, "metadata.managedFields must be nil"),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_what_cannot_be_applied(
    api: Wire, ns: str, change: Body, message: str, exists: bool
) -> None:
    body = config_map(ns, "c")
    if exists:
        api.made(body)
    wanted = {key: each for key, each in {**body, **change}.items() if each is not None}
    answer = api.patch(path_of(body), wanted, "apply", fieldManager="one")
    assert answer.refused(400, "BadRequest")["message"] == message


def test_a_new_object_needs_its_name(api: Wire, ns: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
    where = path_of(config_map(ns, "c"))
    status = api.patch(where, body, "apply", fieldManager="one").refused(400, "BadRequest")
    wanted = "the name of the object (c based on URL) was undeterminable: name must be provided"
    assert status["message"] == wanted
    api.made(config_map(ns, "c"))
    now = api.patch(where, body, "apply", fieldManager="one").done()
    assert now["data"] == {"key": "value", "a": "1"}


def test_the_version_and_the_uid_must_match(api: Wire, ns: str) -> None:
    body = config_map(ns, "c")
    body["metadata"]["uid"] = "1"
    status = apply(api, body, "one").refused(409, "Conflict")
    assert "uid mismatch: the provided object specified uid 1" in status["message"]
    made = api.made(config_map(ns, "c"))
    apply(api, body, "one").refused(422, "Invalid")
    stale = config_map(ns, "c", data={"a": "1"})
    stale["metadata"]["resourceVersion"] = "1"
    message = apply(api, stale, "one").refused(409, "Conflict")["message"]
    assert "the object has been modified" in message
    stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    apply(api, stale, "one").done()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"flavour": 1}, ".flavour: field not declared in schema"),
        ({"data": {"a": 1}}, ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"data": [1]}, ".data: expected map, got &{[1]}"),
    ],
)
def test_what_does_not_have_the_structure_of_its_kind(
    api: Wire, ns: str, change: Body, problem: str
) -> None:
    body = {**config_map(ns, "c"), **change}
    answer = apply(api, body, "one")
    assert answer.code == 500
    about = f"failed to create typed patch object ({ns}/c; /v1, Kind=ConfigMap)"
    assert answer.body["message"] == f"{about}: {problem}"


def test_an_item_is_applied_once(api: Wire, ns: str) -> None:
    body = pod(ns, "p")
    body["spec"]["containers"] *= 2
    name = body["spec"]["containers"][0]["name"]
    answer = apply(api, body, "one")
    problem = f'.spec.containers: duplicate entries for key [name="{name}"]'
    assert (answer.code, answer.body["message"].endswith(problem)) == (500, True)


def _record(**properties: Any) -> Body:
    return {"type": "object", "properties": properties}


_TEXT = {"type": "string"}
_PARTS = {
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    "plain": {"type": "array", "items": _TEXT},
    "items": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "port"],
        "items": {
            **_record(name=_TEXT, port={"type": "integer", "default": 1}, value=_TEXT),
            "required": ["name"],
        },
    },
    "whole": {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": _TEXT,
    },
    "split": {"type": "object", "additionalProperties": _record(a=_TEXT, b=_TEXT)},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@pytest.fixture
def part(api: Wire, unique: Unique) -> Body:
    """An object of a custom kind whose lists and maps say how they are merged."""
    name = unique("Part").replace("-", "")
    schema = {"openAPIV3Schema": _record(spec=_record(**_PARTS))}
    made = api.made(definition(f"{name.lower()}s", name, "Cluster", schema=schema))
    eventually(lambda: established(api, made))
    return {"apiVersion": "suite.aliquot.dev/v1", "kind": name, "metadata": {"name": "x"}}


def test_custom_kinds_say_how_they_are_merged(api: Wire, part: Body) -> None:
    where = f"/apis/suite.aliquot.dev/v1/{part['kind'].lower()}s/x"

    def by(manager: str, **spec: Any) -> Body:
        answer = api.patch(where, {**part, "spec": spec}, "apply", fieldManager=manager)
        return answer.done(answer.code if answer.code < 300 else 0)

    one = {"name": "a", "value": "1"}
    by("one", set=["a"], plain=["a"], items=[one], whole={"a": "1"}, split={"x": {"a": "1"}})
    now = by("two", set=["b"], items=[{"name": "b"}], split={"x": {"b": "1"}, "y": {}})
    spec = now["spec"]
    assert sorted(spec["set"]) == ["a", "b"]
    assert [each["name"] for each in spec["items"]] == ["a", "b"]
    assert spec["split"] == {"x": {"a": "1", "b": "1"}, "y": {}}
    assert owned(now)["two"]["f:spec"] == {
        "f:set": {'v:"b"': {}},
        "f:items": {'k:{"name":"b","port":1}': {".": {}, "f:name": {}}},
        "f:split": {"f:x": {".": {}, "f:b": {}}, "f:y": {}},
    }
    changed = {**part, "spec": {"plain": ["b"], "whole": {"b": "1"}}}
    message = api.patch(where, changed, "apply", fieldManager="two").refused(409, "Conflict")
    assert message["message"].endswith('conflicts with "one":\n- .spec.plain\n- .spec.whole')
    now = by("three", open={"a": {"b": 1}, "l": [1]})
    assert owned(now)["three"]["f:spec"]["f:open"] == {"f:a": {".": {}, "f:b": {}}, "f:l": {}}
    now = by("two", set=["b"])
    assert [each["name"] for each in now["spec"]["items"]] == ["a"]
    assert now["spec"]["split"] == {"x": {"a": "1"}}


def test_custom_kinds_without_a_schema_are_merged_by_their_values(
    api: Wire, unique: Unique
) -> None:
    body = {
        "apiVersion": "suite.aliquot.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": unique("g")},
    }
    apply(api, {**body, "spec": {"a": {"b": 1}, "l": [1]}}, "one").done(201)
    now = apply(api, {**body, "spec": {"a": {"c": 2}}, "more": True}, "two").done()
    assert now["spec"] == {"a": {"b": 1, "c": 2}, "l": [1]}
    spec: Body = {".": {}, "f:a": {".": {}, "f:c": {}}}
    assert owned(now)["two"] == {"f:spec": spec, "f:more": {}}


def test_an_unknown_field_of_a_custom_kind(api: Wire, ns: str) -> None:
    answer = apply(api, widget(ns, "w", what=1), "one")
    about = f"({ns}/w; suite.aliquot.dev/v1, Kind=Widget)"
    problem = (
        f"failed to create typed patch object {about}: .spec.what: field not declared in schema"
    )
    assert (answer.code, answer.body["message"]) == (500, problem)
    made = apply(api, widget(ns, "w"), "one").done(201)
    assert made["spec"] == {"size": 3, "colour": "red", "replicas": 1}
    assert owned(made) == {"one": {"f:spec": fields("size")}}


def test_empty_values_are_claimed(api: Wire, ns: str) -> None:
    body = {**config_map(ns, "c", labels={}), "data": {}, "binaryData": None}
    made = apply(api, body, "one").done(201)
    assert owned(made)["one"] == {
        "f:data": {},
        "f:binaryData": {},
        "f:metadata": {"f:labels": {}},
    }
    assert "data" not in made
