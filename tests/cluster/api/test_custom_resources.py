"""Custom kinds: what a definition says is held to, and all else works as for any kind."""

from typing import Any

import pytest

from tests.cluster.api.objects import definition, path, path_of, thing, widget
from tests.cluster.api.polling import eventually
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Unique, established


@pytest.mark.parametrize(
    ("spec", "field", "reason", "message"),
    [
        ({"size": 0}, "spec.size", "FieldValueInvalid", "should be greater than or equal to 1"),
        ({"size": 101}, "spec.size", "FieldValueInvalid", "should be less than or equal to 100"),
        ({"size": "big"}, "spec.size", "FieldValueTypeInvalid", "must be of type integer"),
        ({"size": 1.5}, "spec.size", "FieldValueTypeInvalid", "must be of type integer"),
        (
            {"size": 1, "colour": "blue"},
            "spec.colour",
            "FieldValueNotSupported",
            'Unsupported value: "blue": supported values: "red", "green"',
        ),
        (
            {"size": 1, "tags": ["A1"]},
            "spec.tags[0]",
            "FieldValueInvalid",
            "should match '^[a-z]+$'",
        ),
        ({"size": 1, "tags": list("abcd")}, "spec.tags", "FieldValueTooMany", "at most 3 items"),
        ({"size": 1, "port": True}, "spec.port", "FieldValueTypeInvalid", ""),
        ({"size": 1, "amounts": {"a": 1}}, "spec.amounts.a", "FieldValueTypeInvalid", ""),
        ({"size": 1, "nested": []}, "spec.nested", "FieldValueTypeInvalid", ""),
    ],
)
def test_the_schema_is_held_to(
    api: Wire, ns: str, spec: dict[str, Any], field: str, reason: str, message: str
) -> None:
    status = api.create(thing("Widget", ns, "a", spec=spec)).refused(422, "Invalid")
    causes = {
        (cause["field"], cause["reason"]): cause["message"] for cause in status["details"]["causes"]
    }
    assert (field, reason) in causes
    assert message in causes[field, reason]
    assert (status["details"]["kind"], status["details"]["group"]) == (
        "Widget",
        "suite.aliquot.dev",
    )
    assert status["message"].startswith('Widget.suite.aliquot.dev "a" is invalid: ')


@pytest.mark.parametrize(("body", "field"), [({}, "spec"), ({"spec": {}}, "spec.size")])
def test_what_is_required(api: Wire, ns: str, body: dict[str, Any], field: str) -> None:
    status = api.create(thing("Widget", ns, "a", **body)).refused(422, "Invalid")
    (cause,) = status["details"]["causes"]
    assert (cause["field"], cause["reason"]) == (field, "FieldValueRequired")


@pytest.mark.parametrize("port", [80, "http"])
def test_numbers_or_words(api: Wire, ns: str, port: Any) -> None:
    assert api.made(widget(ns, "a", port=port))["spec"]["port"] == port


def test_the_schema_is_held_to_in_changes(api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "a"))
    api.patch(path_of(made), {"spec": {"size": 0}}).refused(422, "Invalid")
    api.put(path_of(made), {**made, "spec": {"size": 1000}}).refused(422, "Invalid")
    status = {"status": {"phase": 7}}
    api.patch(path_of(made) + "/status", status).refused(422, "Invalid")


def test_what_the_schema_does_not_know_is_dropped(api: Wire, ns: str) -> None:
    made = api.made(
        widget(ns, "a", secret="x", nested={"flag": True, "other": 1}, anything={"kept": {"a": 1}})
    )
    assert "secret" not in made["spec"]
    assert made["spec"]["nested"] == {"flag": True, "depth": 7}
    assert made["spec"]["anything"] == {"kept": {"a": 1}}
    body = {**widget(ns, "b"), "extra": {"a": 1}}
    assert "extra" not in api.made(body)


def test_or_refused_when_asked_to(api: Wire, ns: str) -> None:
    answer = api.create(widget(ns, "a", secret="x"), fieldValidation="Strict")
    assert 'unknown field "spec.secret"' in answer.refused(400, "BadRequest")["message"]


def test_defaults(api: Wire, ns: str) -> None:
    made = api.made(widget(ns, "a", nested={}))
    assert made["spec"] == {"size": 3, "colour": "red", "replicas": 1, "nested": {"depth": 7}}
    after = api.patch(path_of(made), {"spec": {"colour": None}}).done()
    assert after["spec"]["colour"] == "red"


def test_an_open_schema_takes_anything(api: Wire, unique: Unique) -> None:
    name = unique("gadget")
    made = api.made(thing("Gadget", "", name, spec={"a": [1, {"b": None}]}, more="yes"))
    assert (made["spec"]["a"][0], made["more"]) == (1, "yes")


def test_the_status_is_written_apart(api: Wire, ns: str) -> None:
    made = api.made({**widget(ns, "a"), "status": {"phase": "Up"}})
    assert "status" not in made
    change = {"spec": {"size": 9}, "status": {"phase": "Up"}, "metadata": {"labels": {"a": "b"}}}
    done = api.patch(path_of(made) + "/status", change).done()
    assert (done["status"], done["spec"]["size"]) == ({"phase": "Up"}, 3)
    assert "labels" not in done["metadata"]
    assert done["metadata"]["generation"] == 1
    done = api.patch(path_of(made), {**change, "status": {"phase": "Down"}}).done()
    assert (done["status"], done["spec"]["size"]) == ({"phase": "Up"}, 9)
    assert done["metadata"]["generation"] == 2
    assert done["metadata"]["labels"] == {"a": "b"}


def test_without_a_status_of_its_own_it_is_like_any_field(api: Wire, unique: Unique) -> None:
    made = api.made(thing("Gadget", "", unique("gadget"), status={"phase": "Up"}))
    assert made["status"] == {"phase": "Up"}
    assert api.get(path_of(made) + "/status").code == 404


def test_a_name_in_charge_of_the_cluster_has_no_namespace(api: Wire, ns: str) -> None:
    assert api.get(f"/apis/suite.aliquot.dev/v1/namespaces/{ns}/gadgets").code == 404


def test_kind_and_version_are_needed(api: Wire, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"size": 1}}
    api.post(path("Widget", ns), body).refused(400, "BadRequest")
    other = {**widget(ns, "a"), "kind": "Gadget"}
    status = api.post(path("Widget", ns), other).refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "kind"


def test_a_kind_comes_and_goes(api: Wire) -> None:
    body = definition("passers", "Passer")
    where = "/apis/suite.aliquot.dev/v1/passers"
    assert api.get(where).code == 404
    made = api.made(body)
    eventually(lambda: established(api, body))
    status = api.again(body)["status"]
    assert status["acceptedNames"]["kind"] == "Passer"
    assert status["storedVersions"] == ["v1"]
    one = {"apiVersion": "suite.aliquot.dev/v1", "kind": "Passer", "metadata": {"name": "a"}}
    api.post("/apis/suite.aliquot.dev/v1/namespaces/default/passers", one).done(201)
    assert [item["metadata"]["name"] for item in api.get(where).done()["items"]] == ["a"]
    api.delete(path_of(body)).done()
    eventually(lambda: api.gone(made) and api.get(where).code == 404)
    api.made(body)
    eventually(lambda: established(api, body))
    assert api.get(where).done()["items"] == []
    api.delete(path_of(body)).done()


def test_a_schema_can_change(api: Wire) -> None:
    body = definition("changers", "Changer")
    api.made(body)
    eventually(lambda: established(api, body))
    schema = {"type": "object", "properties": {"spec": {"type": "string"}}}
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    assert api.patch(path_of(body), change, "json").done()["metadata"]["generation"] == 2
    one = {"apiVersion": "suite.aliquot.dev/v1", "kind": "Changer", "metadata": {"name": "a"}}
    where = "/apis/suite.aliquot.dev/v1/namespaces/default/changers"
    eventually(lambda: api.post(where, {**one, "spec": 1}, dryRun="All").code == 422)
    api.delete(path_of(body)).done()


def test_two_versions_of_a_kind(api: Wire) -> None:
    body = definition("aged", "Aged")
    newer = {**body["spec"]["versions"][0], "name": "v2", "storage": False}
    body["spec"]["versions"].append(newer)
    api.made(body)
    eventually(lambda: established(api, body))
    one = {"apiVersion": "suite.aliquot.dev/v1", "kind": "Aged", "metadata": {"name": "a"}}
    eventually(lambda: api.get("/apis/suite.aliquot.dev/v2/aged").code == 200)
    api.post("/apis/suite.aliquot.dev/v1/namespaces/default/aged", one).done(201)
    seen = api.get("/apis/suite.aliquot.dev/v2/namespaces/default/aged/a").done()
    assert seen["apiVersion"] == "suite.aliquot.dev/v2"
    api.delete(path_of(body)).done()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"group": "other.dev"}, "metadata.name"),
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"plural": "wrongs"}}, "spec.names.kind"),
    ],
)
def test_a_definition_is_checked(api: Wire, change: dict[str, Any], field: str) -> None:
    body = definition("wrongs", "Wrong")
    body["spec"] |= change
    causes = api.create(body).refused(422, "Invalid")["details"]["causes"]
    assert field in {cause["field"] for cause in causes}
