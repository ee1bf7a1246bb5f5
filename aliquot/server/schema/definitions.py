"""The definitions of OpenAPI: one for each type of Kubernetes, which refer to each other by name.

Version 2 and 3 have the same ones, with other references. `kubectl explain` shows the names, and
kubectl's own validation, of lists for example, writes them into its messages: they are Kubernetes'.
"""

from collections.abc import Iterable
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas import kubernetes
from aliquot.server.schema.go_types import go_type

V2, V3 = "#/definitions/", "#/components/schemas/"
"""Where a reference leads to, in version 2 and 3."""
_PLAIN: dict[str, tuple[str, dict[str, Schema]]] = {
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {V2: {"type": "string"}, V3: {"oneOf": [{"type": "string"}, {"type": "number"}]}},
    ),
    "int-or-string": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {
            V2: {"type": "string", "format": "int-or-string"},
            V3: {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        },
    ),
}
"""Scalars that have a definition of their own, in version 2 and 3."""
_NOT_IN_2 = ("allOf", "anyOf", "oneOf", "not", "nullable", "default", "pattern")
_ARBITRARY = ("type", "properties", "additionalProperties", "items", "required", "format", "enum")


def name_of(type_name: str) -> str:
    """`io.k8s.api.core.v1.PodSpec` for `PodSpec`."""
    return f"io.k8s.{go_type(type_name).package}.{type_name.rpartition('.')[2]}"


def definitions(type_names: Iterable[str], place: str) -> dict[str, Schema]:
    """The definitions of these types, and of all that they refer to, by name."""
    found: dict[str, Schema] = {name: each[place] for name, each in _PLAIN.values()}
    wanted = list(type_names)
    seen: set[str] = set()
    while wanted:
        type_name = wanted.pop()
        if type_name in seen:
            continue
        seen.add(type_name)
        found[name_of(type_name)] = _definition(type_name, place)
        wanted += filter(None, map(_record_of, kubernetes.fields(type_name).values()))
    return dict(sorted(found.items()))


def _record_of(written: str) -> str | None:
    name = written.partition(" ")[0].strip("[]{}")
    return name if name[:1].isupper() or "." in name else None


def _definition(type_name: str, place: str) -> Schema:
    record = kubernetes.record(type_name)
    properties = {
        field: _property(written, record["properties"][field], place)
        for field, written in kubernetes.fields(type_name).items()
    }
    about: Schema = {key: record[key] for key in ("description", "type") if key in record}
    required = go_type(type_name).required
    return {**about, **({"required": list(required)} if required else {}), "properties": properties}


def _property(written: str, shape: Schema, place: str) -> Schema:
    """A field: its type, its description, and how it is merged."""
    name, *merged = written.split(" ")
    kept = {
        key: each
        for key, each in shape.items()
        if key == "description" or key.startswith("x-kubernetes-patch")
    }
    found = _typed(name, place)
    if "$ref" in found and place == V3 and kept:
        found = {"allOf": [found]}
    return {**kept, **found, **_list_type(name, merged)}


def _typed(name: str, place: str) -> Schema:
    if name.startswith("["):
        return {"type": "array", "items": _typed(name[1:-1], place)}
    if name.startswith("{"):
        return {"type": "object", "additionalProperties": _typed(name[1:-1], place)}
    if name in _PLAIN:
        return {"$ref": place + _PLAIN[name][0]}
    if _record_of(name) is not None:
        return {"$ref": place + name_of(name)}
    return _SCALARS[name]


_SCALARS: dict[str, Schema] = {
    "any": {"type": "object"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "string": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
}


def _list_type(name: str, merged: list[str]) -> Schema:
    for word in merged:
        how, _, keys = word.partition(":")
        if how == "map":
            by = {"x-kubernetes-list-map-keys": keys.split(",")}
            return {**by, "x-kubernetes-list-type": "map"}
        if how == "set":
            return {"x-kubernetes-list-type": "set"}
        if how == "atomic" and name.startswith("{"):
            return {"x-kubernetes-map-type": "atomic"}
    return {"x-kubernetes-list-type": "atomic"} if name.startswith("[") else {}


def in_version_2(schema: Schema) -> Schema:
    """The schema of a custom kind in version 2, which has fewer keywords.

    What version 2 cannot say is left open: fields that may be null, of several types, or unknown.
    """
    kept = {key: each for key, each in schema.items() if key not in _NOT_IN_2}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable")
    if is_open or schema.get("x-kubernetes-int-or-string"):
        return {key: each for key, each in kept.items() if key not in _ARBITRARY}
    if "properties" in kept:
        inner = kept["properties"].items()
        kept["properties"] = {name: in_version_2(each) for name, each in inner}
    for key in ("items", "additionalProperties"):
        part: Any = kept.get(key)
        if isinstance(part, dict):
            kept[key] = in_version_2(part)
    return kept
