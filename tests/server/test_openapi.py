"""OpenAPI: what kubectl looks for, so that it explains kinds and leaves checking to the server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from aliquot.dialects.crds import DEFINITIONS
from aliquot.server.kinds.kind import KUBERNETES_KINDS, unique_name
from aliquot.server.schema import openapi2
from aliquot.server.schema.core_schemas import schema as core_schema
from aliquot.server.schema.openapi import document, index


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    schema: dict[str, Any] | None = None

    @property
    def unique_name(self) -> str:
        return unique_name(self.group, self.name)


def custom() -> list[Kind]:
    return [
        Kind(
            each.group,
            each.version,
            each.kind,
            each.plural,
            each.namespaced,
            each.body()["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        )
        for each in DEFINITIONS
    ]


POD = Kind("", "v1", "Pod", "pods")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
IDENTITY = "x-kubernetes-group-version-kind"


def test_the_index_says_where_documents_are() -> None:
    assert index(["v1", "apps/v1"], "abc")["paths"] == {
        "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=abc"},
        "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=abc"},
    }


def test_paths_lead_to_kinds() -> None:
    paths = document("v1", [POD, NODE])["paths"]
    assert set(paths) == {
        "/api/v1/pods",
        "/api/v1/namespaces/{namespace}/pods",
        "/api/v1/namespaces/{namespace}/pods/{name}",
        "/api/v1/nodes",
        "/api/v1/nodes/{name}",
    }
    one = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert one["get"][IDENTITY] == {"group": "", "version": "v1", "kind": "Pod"}
    assert [each["name"] for each in one["parameters"]] == ["namespace", "name"]
    assert set(document("coordination.k8s.io/v1", [LEASE])["paths"]) >= {
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    }


def test_patching_leaves_checking_to_the_server() -> None:
    patch = document("v1", [NODE])["paths"]["/api/v1/nodes/{name}"]["patch"]
    names = {each["name"] for each in patch["parameters"]}
    assert {"fieldValidation", "dryRun"} <= names
    assert "application/merge-patch+json" in patch["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_a_kind_is_found_by_group_version_and_kind() -> None:
    schemas = document("v1", [POD])["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert pod[IDENTITY] == [{"group": "", "version": "v1", "kind": "Pod"}]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]
    assert pod["properties"]["spec"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}
    ]
    assert spec["required"] == ["containers"]
    containers = spec["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert schemas["io.k8s.api.core.v1.PodList"][IDENTITY][0]["kind"] == "PodList"


def test_a_kind_that_nothing_is_known_of_is_an_open_object() -> None:
    kind = Kind("policy", "v1", "Strange", "stranges")
    shape = document("policy/v1", [kind])["components"]["schemas"]["policy.v1.Strange"]
    assert shape["x-kubernetes-preserve-unknown-fields"] is True
    assert "metadata" in shape["properties"]


@pytest.mark.parametrize("kind", custom(), ids=lambda kind: kind.unique_name)
def test_custom_kinds_show_the_schema_of_their_definition(kind: Kind) -> None:
    made = document(f"{kind.group}/{kind.version}", [kind])
    (name,) = [key for key in made["components"]["schemas"] if key.endswith(f".{kind.name}")]
    shape = made["components"]["schemas"][name]
    assert kind.schema is not None
    assert shape["properties"]["spec"] == kind.schema["properties"]["spec"]
    metadata = shape["properties"]["metadata"]["$ref"].rpartition("/")[2]
    assert "labels" in made["components"]["schemas"][metadata]["properties"]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_a_document_is_whole_and_plain() -> None:
    made = document("v1", [POD, NODE])
    assert json.loads(json.dumps(made)) == made
    known = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}
    assert set(references(made)) <= known


def test_version_2_is_whole_and_plain() -> None:
    made = openapi2.document([POD, NODE, *custom()])
    assert json.loads(json.dumps(made)) == made
    known = {f"#/definitions/{name}" for name in made["definitions"]}
    assert set(references(made)) <= known
    patch = made["paths"]["/api/v1/nodes/{name}"]["patch"]
    assert "fieldValidation" in {each["name"] for each in patch["parameters"]}
    assert patch[IDENTITY] == {"group": "", "version": "v1", "kind": "Node"}


def messages(content: bytes) -> Iterator[tuple[int, Any]]:
    """The numbered parts of a protobuf message."""
    at = 0

    def integer() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(content):
        key = integer()
        if key & 7 == 0:
            yield key >> 3, integer()
            continue
        length = integer()
        yield key >> 3, content[at : at + length]
        at += length


def part(content: bytes, *numbers: int) -> list[Any]:
    """All parts at the end of a path of numbers."""
    found: list[Any] = [content]
    for number in numbers:
        found = [value for each in found for at, value in messages(each) if at == number]
    return found


def test_version_2_as_protobuf_has_the_same_definitions() -> None:
    made = openapi2.document([POD, *custom()])
    content = openapi2.protobuf(made)
    assert part(content, 1) == [b"2.0"]
    assert [name.decode() for name in part(content, 9, 1, 1)] == list(made["definitions"])
    assert [path.decode() for path in part(content, 8, 2, 1)] == list(made["paths"])
    by_name = dict(zip(part(content, 9, 1, 1), part(content, 9, 1, 2), strict=True))
    pod_spec = by_name[b"io.k8s.api.core.v1.PodSpec"]
    assert part(pod_spec, 19) == [b"containers"]
    assert b"nodeName" in part(pod_spec, 25, 1, 1)


def test_every_kind_with_a_shape_is_one_of_kubernetes() -> None:
    own = {kind for kinds in KUBERNETES_KINDS.values() for kind in kinds}
    shaped = {kind for kind in own if core_schema(kind) is not None}
    assert {"Pod", "Node", "Deployment", "Job", "Lease", "CustomResourceDefinition"} <= shaped
