"""What is wrong is refused with a Status that clients can act on: code, reason, causes, fields."""

import json
from typing import Any

import pytest
import yaml

from tests.build.manifests import container, priority_class
from tests.cluster.api.objects import (
    binding,
    config_map,
    deployment,
    path,
    path_of,
    pod,
    resource_quota,
    thing,
)
from tests.cluster.api.wire import Body, Wire
from tests.cluster.conftest import Unique


def test_an_unknown_name(api: Wire, ns: str) -> None:
    status = api.get(path("Pod", ns, "nobody")).refused(404, "NotFound")
    assert status["message"] == 'pods "nobody" not found'
    assert status["details"] == {"name": "nobody", "kind": "pods"}
    status = api.get(path("Deployment", ns, "nobody")).refused(404, "NotFound")
    assert status["message"] == 'deployments.apps "nobody" not found'
    assert status["details"] == {"name": "nobody", "group": "apps", "kind": "deployments"}


def test_an_unknown_namespace(api: Wire) -> None:
    status = api.create(config_map("nowhere", "a")).refused(404, "NotFound")
    assert status["message"] == 'namespaces "nowhere" not found'
    assert status["details"] == {"name": "nowhere", "kind": "namespaces"}
    assert api.get(path("ConfigMap", "nowhere")).done()["items"] == []


@pytest.mark.parametrize(
    "where", ["/nothing", "/api/v1/nothings", "/apis/apps/v1/nothings", "/apis/no.such/v1/things"]
)
def test_an_unknown_path(api: Wire, where: str) -> None:
    assert api.get(where).code == 404


def test_a_method_that_is_not_for_this(api: Wire, ns: str) -> None:
    body = config_map(ns, "a")
    api.made(body)
    api.post(path_of(body), body).refused(405, "MethodNotAllowed")
    api.put(path("ConfigMap", ns), body).refused(405, "MethodNotAllowed")
    api.get(path("Pod", ns, "a", "binding")).refused(405, "MethodNotAllowed")


def test_malformed_json(api: Wire, ns: str) -> None:
    for kind in ("ConfigMap", "Pod", "Widget"):
        api.post(path(kind, ns), b'{"metadata":').refused(400, "BadRequest")


def test_another_kind(api: Wire, ns: str) -> None:
    status = api.post(path("Pod", ns), config_map(ns, "a")).refused(400, "BadRequest")
    assert status["message"].startswith('ConfigMap in version "v1" cannot be handled as a Pod')


def test_a_value_of_another_type(api: Wire, ns: str) -> None:
    for body in (config_map(ns, "a", data={"a": 1}), pod(ns, "a", containers="many")):
        status = api.create(body).refused(400, "BadRequest")
        assert "cannot be handled as a" in status["message"]


def test_a_quantity_that_is_none(api: Wire, ns: str) -> None:
    body = pod(ns, "a", resources={"requests": {"cpu": "some"}})
    assert "quantities must match" in api.create(body).refused(400, "BadRequest")["message"]


def test_content_that_is_not_understood(api: Wire, ns: str) -> None:
    answer = api.post(path("ConfigMap", ns), b"a: b", content="text/plain")
    status = answer.refused(415, "UnsupportedMediaType")
    assert "accepted media types include: application/json" in status["message"]


def test_a_patch_in_no_form_of_a_patch(api: Wire, ns: str) -> None:
    body = config_map(ns, "a")
    api.made(body)
    api.call("PATCH", path_of(body), {}).refused(415, "UnsupportedMediaType")


def test_an_answer_nobody_can_give(api: Wire, ns: str) -> None:
    api.get(path("Pod", ns), accept="text/html").refused(406, "NotAcceptable")


def test_yaml_is_understood_and_spoken(api: Wire, ns: str) -> None:
    sent = yaml.safe_dump(config_map(ns, "a")).encode()
    api.post(path("ConfigMap", ns), sent, content="application/yaml").done(201)
    answer = api.get(path("ConfigMap", ns, "a"), accept="application/yaml")
    assert yaml.safe_load(answer.body)["data"] == {"key": "value"}


def test_without_a_token(api: Wire) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}):
        for where in ("/api/v1/pods", "/apis", "/version"):
            status = api.call("GET", where, headers=headers).refused(401, "Unauthorized")
            assert status["message"] == "Unauthorized"


def test_a_body_that_is_too_large(api: Wire, ns: str) -> None:
    body = config_map(ns, "a", data={"a": "x" * (3 * 2**20)})
    status = api.create(body).refused(413, "RequestEntityTooLarge")
    assert status["message"] == "Request entity too large: limit is 3145728"


def test_a_config_map_that_is_too_large(api: Wire, ns: str) -> None:
    status = api.create(config_map(ns, "a", data={"a": "x" * 1_100_000})).refused(422, "Invalid")
    assert status["details"]["causes"][0]["reason"] == "FieldValueTooLong"


def test_neither_a_name_nor_the_start_of_one(api: Wire, ns: str) -> None:
    status = api.post(path("ConfigMap", ns), {"data": {}}).refused(422, "Invalid")
    assert status["details"] == {
        "kind": "ConfigMap",
        "causes": [
            {
                "reason": "FieldValueRequired",
                "message": "Required value: name or generateName is required",
                "field": "metadata.name",
            }
        ],
    }
    assert status["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


def _with(**spec: Any) -> Body:
    return pod("ns", "a", **spec)


def _amounts(limits: dict[str, str] | None = None, **requests: str) -> Body:
    asked = {key.replace("__", "/").replace("_", "."): amount for key, amount in requests.items()}
    return pod("ns", "a", resources={"requests": asked, "limits": limits or {}})


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_INVALID: dict[str, tuple[Body, str, str, str]] = {
    "the name": (
        pod("ns", "A_b"),
        "metadata.name",
        "FieldValueInvalid",
        "lower case alphanumeric characters",
    ),
    "a long name": (pod("ns", "a" * 254), "metadata.name", "FieldValueInvalid", "no more than 253"),
    "a label": (
        pod("ns", "a", labels={"a": "not this!"}),
        "metadata.labels",
        "FieldValueInvalid",
        "a valid label must be",
    ),
    "a label's key": (
        pod("ns", "a", labels={"-a": "b"}),
        "metadata.labels",
        "FieldValueInvalid",
        "name part must consist of",
    ),
    "an annotation's key": (
        pod("ns", "a", annotations={"a b": "c"}),
        "metadata.annotations",
        "FieldValueInvalid",
        "name part must consist of",
    ),
    "a finalizer": (
        pod("ns", "a", finalizers=["plain"]),
        "metadata.finalizers[0]",
        "FieldValueInvalid",
        "name is neither a standard finalizer name nor is it fully qualified",
    ),
    "no containers": (_with(containers=[]), "spec.containers", "FieldValueRequired", ""),
    "no name": (
        _with(containers=[{"image": "a"}]),
        "spec.containers[0].name",
        "FieldValueRequired",
        "",
    ),
    "a container's name": (
        _with(containers=[container("A")]),
        "spec.containers[0].name",
        "FieldValueInvalid",
        "",
    ),
    "no image": (
        _with(containers=[{"name": "a"}]),
        "spec.containers[0].image",
        "FieldValueRequired",
        "",
    ),
    "two of a name": (
        _with(containers=[container(), container()]),
        "spec.containers[1].name",
        "FieldValueDuplicate",
        'Duplicate value: "main"',
    ),
    "the restart policy": (
        _with(restartPolicy="Sometimes"),
        "spec.restartPolicy",
        "FieldValueNotSupported",
        "supported values: ",
    ),
    "a toleration": (
        _with(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "spec.tolerations[0].operator",
        "FieldValueInvalid",
        "value must be empty when `operator` is 'Exists'",
    ),
    "a toleration for a while": (
        _with(tolerations=[{"operator": "Exists", "tolerationSeconds": 5}]),
        "spec.tolerations[0].effect",
        "FieldValueInvalid",
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    "an affinity to nothing": (
        _with(affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": []}}}),
        f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms",
        "FieldValueRequired",
        "must have at least one node selector term",
    ),
    "a gate": (
        _with(schedulingGates=[{"name": "no way"}]),
        "spec.schedulingGates[0]",
        "FieldValueInvalid",
        "",
    ),
    "a node selector": (
        _with(nodeSelector={"a": "b c"}),
        "spec.nodeSelector",
        "FieldValueInvalid",
        "",
    ),
    "more than the limit": (
        _amounts({"cpu": "1"}, cpu="2"),
        "spec.containers[0].resources.requests",
        "FieldValueInvalid",
        'Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    "less than nothing": (
        _amounts(cpu="-1"),
        "spec.containers[0].resources.requests[cpu]",
        "FieldValueInvalid",
        "must be greater than or equal to 0",
    ),
    "an unknown resource": (
        _amounts(gpu="1"),
        "spec.containers[0].resources.requests[gpu]",
        "FieldValueInvalid",
        "must be a standard resource for containers",
    ),
    "a part of a device": (
        _amounts({"nvidia.com/gpu": "500m"}, nvidia_com__gpu="500m"),
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
        "FieldValueInvalid",
        "must be an integer",
    ),
    "a device without a limit": (
        _amounts(nvidia_com__gpu="1"),
        "spec.containers[0].resources.limits",
        "FieldValueRequired",
        "Limit must be set for non overcommitable resources",
    ),
    "a device above its request": (
        _amounts({"nvidia.com/gpu": "2"}, nvidia_com__gpu="1"),
        "spec.containers[0].resources.requests",
        "FieldValueInvalid",
        "must be equal to nvidia.com/gpu limit of 2",
    ),
    "a quota below nothing": (
        resource_quota("ns", "a", pods="-1"),
        "spec.hard[pods]",
        "FieldValueInvalid",
        "must be greater than or equal to 0",
    ),
    "pods by halves": (
        resource_quota("ns", "a", pods="500m"),
        "spec.hard[pods]",
        "FieldValueInvalid",
        "must be an integer",
    ),
    "a selector that selects other pods": (
        deployment("ns", "a")
        | {"spec": deployment("ns", "a")["spec"] | {"selector": {"matchLabels": {"app": "other"}}}},
        "spec.template.metadata.labels",
        "FieldValueInvalid",
        "`selector` does not match template `labels`",
    ),
    "a job that runs for ever": (
        thing("Job", "ns", "a", spec={"template": {"spec": {"containers": [container()]}}}),
        "spec.template.spec.restartPolicy",
        "FieldValueRequired",
        'valid values: "OnFailure", "Never"',
    ),
    "fewer than none": (
        deployment("ns", "a") | {"spec": deployment("ns", "a")["spec"] | {"replicas": -1}},
        "spec.replicas",
        "FieldValueInvalid",
        "must be greater than or equal to 0",
    ),
}


@pytest.mark.parametrize("case", sorted(_INVALID))
def test_an_invalid_object_names_the_field(api: Wire, ns: str, case: str) -> None:
    body, field, reason, message = _INVALID[case]
    body = json.loads(json.dumps(body))
    body["metadata"]["namespace"] = ns
    status = api.create(body).refused(422, "Invalid")
    group, _, _ = body["apiVersion"].rpartition("/")
    assert status["details"]["kind"] == body["kind"]
    assert status["details"]["name"] == body["metadata"]["name"]
    assert status["details"].get("group", "") == group
    causes = {(cause["field"], cause["reason"]): cause for cause in status["details"]["causes"]}
    assert (field, reason) in causes
    assert message in causes[field, reason]["message"]
    full = body["kind"] + (f".{group}" if group else "")
    assert status["message"].startswith(f'{full} "{body["metadata"]["name"]}" is invalid: ')


def test_all_that_is_wrong_is_named_at_once(api: Wire, ns: str) -> None:
    body = pod(ns, "a", restartPolicy="Sometimes", containers=[{"name": "a"}])
    causes = api.create(body).refused(422, "Invalid")["details"]["causes"]
    assert {"spec.restartPolicy", "spec.containers[0].image"} <= {c["field"] for c in causes}


def test_priorities_of_users_end_at_a_thousand_million(api: Wire, unique: Unique) -> None:
    api.made(priority_class(unique("high"), 1_000_000_000))
    status = api.create(priority_class(unique("high"), 1_000_000_001)).refused(422, "Invalid")
    assert "maximum allowed value of a user defined priority is 1000000000" in status["message"]


def test_the_value_of_a_priority_class_stays(api: Wire, unique: Unique) -> None:
    body = priority_class(unique("fixed"), 5)
    api.made(body)
    status = api.patch(path_of(body), {"value": 6}).refused(422, "Invalid")
    (cause,) = status["details"]["causes"]
    assert cause["field"] == "value"


def test_unknown_fields_are_refused_when_asked_to(api: Wire, ns: str) -> None:
    body = pod(ns, "a", flavour="sweet")
    status = api.create(body, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.flavour"' in status["message"]
    answer = api.create(body)
    assert "flavour" not in answer.done(201)["spec"]
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.flavour\\""'
    body["metadata"]["name"] = "b"
    assert "Warning" not in api.create(body, fieldValidation="Ignore").headers


def test_a_binding_needs_a_node(api: Wire, ns: str) -> None:
    api.made(pod(ns, "a"))
    answer = api.post(path("Pod", ns, "a", "binding"), binding("a", ""))
    assert answer.code in (422, 500), "the real one says it is a fault of its own"
    assert "target.name: Required value" in answer.body["message"]
