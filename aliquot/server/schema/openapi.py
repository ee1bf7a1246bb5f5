"""The schemas of all kinds as OpenAPI v3: for `kubectl explain`, and for clients that validate.

PATCH lists `fieldValidation` and `dryRun`, so that kubectl leaves validation to the server. It does
not list strategic merge patches, though they are supported: kubectl would compute them from these
schemas, which have only part of a pod, instead of from its own.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Protocol

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas import kubernetes
from aliquot.json import Body
from aliquot.server.schema.definitions import V2, V3, definitions, in_version_2, name_of

_JSON = "application/json"
_OK = str(HTTPStatus.OK.value)
_PATCHES = ("application/json-patch+json", "application/merge-patch+json")
_APPLY = "application/apply-patch+yaml"
_LIST_METADATA = {
    "type": "object",
    "properties": {
        "resourceVersion": {"type": "string"},
        "continue": {"type": "string"},
        "remainingItemCount": {"type": "integer", "format": "int64"},
    },
}


class Kind(Protocol):
    """What is read of a kind: its names, its scope, and the schema of a custom one."""

    @property
    def group(self) -> str:
        """Its group; empty for the core group."""

    @property
    def version(self) -> str:
        """Its version."""

    @property
    def name(self) -> str:
        """Its name, such as `Pod`."""

    @property
    def plural(self) -> str:
        """Its name in a path, such as `pods`."""

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""

    @property
    def unique_name(self) -> str:
        """Its unique name, such as `Job.batch.volcano.sh`."""

    @property
    def schema(self) -> Schema | None:
        """The schema of its definition, if it is a custom one."""


def index(group_versions: Iterable[str], digest: str) -> Body:
    """The answer to `/openapi/v3`: the URL of the document of each group and version."""
    paths = (path_of(each) for each in group_versions)
    return {"paths": {each: {"serverRelativeURL": _url(each, digest)} for each in paths}}


def path_of(group_version: str) -> str:
    """`api/v1` for `v1`, `apis/apps/v1` for `apps/v1`."""
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def _url(path: str, digest: str) -> str:
    return f"/openapi/v3/{path}?hash={digest}"


def document(group_version: str, kinds: Iterable[Kind]) -> Body:
    """The document of a group and version: schemas and paths of its kinds."""
    listed = list(kinds)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": {path: item for kind in listed for path, item in paths(group_version, kind)},
        "components": {"schemas": schemas(listed, V3)},
    }


def schemas(kinds: Iterable[Kind], place: str) -> dict[str, Schema]:
    """The schemas of kinds, of their lists and of all types that they are made of, by name."""
    listed = list(kinds)
    types = [type_name for each in listed if (type_name := _type_name(each)) is not None]
    found = definitions(["ObjectMeta", *types], place)
    for kind in listed:
        name = schema_name(kind)
        found[name] = _of_kind(kind, found.get(name), place)
        found[f"{name}List"] = _of_list(kind, place)
    return found


def _of_kind(kind: Kind, definition: Schema | None, place: str) -> Schema:
    """The schema of a kind with apiVersion, kind and metadata."""
    shape = kind.schema or definition
    if shape is None:
        shape = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if kind.schema is not None and place == V2:
        shape = in_version_2(kind.schema)
    properties = {
        "apiVersion": {"type": "string", "description": "The group and version of its shape."},
        "kind": {"type": "string", "description": "The kind of the object."},
        **shape.get("properties", {}),
        "metadata": {"$ref": place + name_of("ObjectMeta")},
    }
    identity = {"x-kubernetes-group-version-kind": [_identity(kind)]}
    if place == V2 and shape.get("x-kubernetes-preserve-unknown-fields"):
        return {**shape, "type": "object", **identity}
    return {**shape, "properties": properties, **identity}


def _of_list(kind: Kind, place: str) -> Schema:
    items = {"type": "array", "items": {"$ref": place + schema_name(kind)}}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": _LIST_METADATA,
        "items": items,
    }
    identity = {**_identity(kind), "kind": f"{kind.name}List"}
    return {
        "description": f"A list of objects of the kind {kind.name}.",
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [identity],
    }


def paths(group_version: str, kind: Kind) -> Iterator[tuple[str, Body]]:
    """The paths of a kind, and what can be asked there."""
    root = f"/{path_of(group_version)}"
    within = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    everything = {"get": _operation(kind, "List", listed=True)}
    made = {"post": _operation(kind, "Create", body=(_JSON,))}
    given = [_parameter("namespace", "path")] if kind.namespaced else []
    if kind.namespaced:
        yield f"{root}/{kind.plural}", everything
    collection = {**everything, **made}
    yield f"{within}/{kind.plural}", _with_parameters(collection, given)
    one = {
        "get": _operation(kind, "Read"),
        "put": _operation(kind, "Replace", body=(_JSON,)),
        "patch": _operation(kind, "Patch", body=(*_PATCHES, _APPLY)),
        "delete": _operation(kind, "Delete"),
    }
    named = [*given, _parameter("name", "path")]
    yield f"{within}/{kind.plural}/{{name}}", _with_parameters(one, named)


def _operation(kind: Kind, verb: str, body: tuple[str, ...] = (), listed: bool = False) -> Body:
    name = schema_name(kind)
    answer = _reference(f"{name}List" if listed else name)
    operation: Body = {
        "operationId": f"{verb.lower()}{kind.name}",
        "description": f"{verb} objects of the kind {kind.name}.",
        "responses": {_OK: {"description": "OK", "content": {_JSON: {"schema": answer}}}},
        "x-kubernetes-group-version-kind": _identity(kind),
    }
    if not body:
        return operation
    given = _reference(name) if body == (_JSON,) else {"type": "object"}
    words = ["dryRun", "fieldManager", "fieldValidation"]
    operation["parameters"] = [_parameter(word, "query") for word in words]
    operation["requestBody"] = {"content": {form: {"schema": given} for form in body}}
    return operation


def _with_parameters(item: Body, parameters: list[Body]) -> Body:
    return {**item, "parameters": parameters} if parameters else item


def _parameter(name: str, place: str) -> Body:
    more: dict[str, Any] = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": {"type": "string"}, **more}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _identity(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _type_name(kind: Kind) -> str | None:
    """The type of a built-in kind in the table of types."""
    if kind.schema is not None:
        return None
    api_version = f"{kind.group}/{kind.version}".removeprefix("/")
    return kubernetes.kinds().get((api_version, kind.name))


def schema_name(kind: Kind) -> str:
    """`io.k8s.api.core.v1.Pod`, `sh.volcano.batch.v1alpha1.Job`: groups in reverse order."""
    type_name = _type_name(kind)
    if type_name is not None:
        return name_of(type_name)
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{kind.name}"
