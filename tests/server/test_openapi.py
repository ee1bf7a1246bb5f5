"""OpenAPI: what kubectl looks for, so that it explains kinds and leaves checking to the server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from aliquot.dialects.crds import DEFINITIONS
from aliquot.server.kinds.kind import KUBERNETES_KINDS, unique_name
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
    containers = pod["properties"]["spec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert schemas["io.k8s.api.core.v1.PodList"][IDENTITY][0]["kind"] == "PodList"


def test_a_kind_that_nothing_is_known_of_is_an_open_object() -> None:
    kind = Kind("policy", "v1", "Strange", "stranges")
    (shape, _) = document("policy/v1", [kind])["components"]["schemas"].values()
    assert shape["x-kubernetes-preserve-unknown-fields"] is True
    assert "metadata" in shape["properties"]


@pytest.mark.parametrize("kind", custom(), ids=lambda kind: kind.unique_name)
def test_custom_kinds_show_the_schema_of_their_definition(kind: Kind) -> None:
    made = document(f"{kind.group}/{kind.version}", [kind])
    (name,) = [key for key in made["components"]["schemas"] if key.endswith(f".{kind.name}")]
    shape = made["components"]["schemas"][name]
    assert kind.schema is not None
    assert shape["properties"]["spec"] == kind.schema["properties"]["spec"]
    assert "labels" in shape["properties"]["metadata"]["properties"]


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


def test_every_kind_with_a_shape_is_one_of_kubernetes() -> None:
    own = {kind for kinds in KUBERNETES_KINDS.values() for kind in kinds}
    shaped = {kind for kind in own if core_schema(kind) is not None}
    assert {"Pod", "Node", "Deployment", "Job", "Lease", "CustomResourceDefinition"} <= shaped
