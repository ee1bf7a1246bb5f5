"""The schemas of all kinds as OpenAPI v2, in one document: for clients that do not read version 3.

kubectl checks `fieldValidation` in version 3, but reads version 2 for what it finds no support for
there: kinds that do not exist, and lists, whose items it validates itself by these definitions. It
reads it only as protobuf, with the messages and numbers of gnostic's OpenAPIv2.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.json import Body
from aliquot.server.schema.definitions import V2, V3
from aliquot.server.schema.openapi import Kind, paths, schemas

_JSON = "application/json"
_SCHEMA_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def document(kinds: Iterable[Kind]) -> Body:
    """The document of all kinds."""
    listed = list(kinds)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": {
            path: _item(item)
            for kind in listed
            for path, item in paths(f"{kind.group}/{kind.version}".removeprefix("/"), kind)
        },
        "definitions": schemas(listed, V2),
    }


def _item(item: Body) -> Body:
    """A path of version 3 in version 2."""
    found: Body = {method: _operation(each) for method, each in item.items() if method in _METHODS}
    if "parameters" in item:
        found["parameters"] = [_parameter(each) for each in item["parameters"]]
    return found


def _operation(operation: Body) -> Body:
    given = operation.get("requestBody", {}).get("content", {})
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    if given:
        body = {"name": "body", "in": "body", "required": True}
        parameters = [{**body, "schema": _referring(next(iter(given.values())))}, *parameters]
    return {
        "operationId": operation["operationId"],
        "description": operation["description"],
        "consumes": list(given) or ["*/*"],
        "produces": [_JSON],
        "parameters": parameters,
        "responses": {
            code: {"description": "OK", "schema": _referring(each["content"][_JSON])}
            for code, each in operation["responses"].items()
        },
        "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
    }


def _parameter(parameter: Body) -> Body:
    kept = {key: each for key, each in parameter.items() if key != "schema"}
    return {**kept, "type": "string", "uniqueItems": True}


def _referring(content: Body) -> Schema:
    schema = content["schema"]
    return {"$ref": schema["$ref"].replace(V3, V2)} if "$ref" in schema else schema


def protobuf(whole: Body) -> bytes:
    """A document as the protobuf message Document."""
    info = _text(1, whole["info"]["title"]) + _text(2, whole["info"]["version"])
    all_paths = b"".join(
        _part(2, _text(1, path) + _part(2, _path_item(item)))
        for path, item in whole["paths"].items()
    )
    named = _named_schemas(whole["definitions"])
    return _text(1, whole["swagger"]) + _part(2, info) + _part(8, all_paths) + _part(9, named)


def _path_item(item: Body) -> bytes:
    parts = [
        _part(_METHODS[word], _operation_message(item[word])) for word in _METHODS if word in item
    ]
    parts += [_part(9, _parameter_message(each)) for each in item.get("parameters", ())]
    return b"".join(parts)


def _operation_message(operation: Body) -> bytes:
    parts = [_text(3, operation["description"]), _text(5, operation["operationId"])]
    parts += [_text(6, each) for each in operation["produces"]]
    parts += [_text(7, each) for each in operation["consumes"]]
    parts += [_part(8, _parameter_message(each)) for each in operation["parameters"]]
    responses = (
        _text(1, code) + _part(2, _part(1, _response(each)))
        for code, each in operation["responses"].items()
    )
    parts.append(_part(9, b"".join(_part(1, each) for each in responses)))
    parts += _extensions(13, operation)
    return b"".join(parts)


def _response(response: Body) -> bytes:
    return _text(1, response["description"]) + _part(2, _part(1, _schema(response["schema"])))


def _parameter_message(parameter: Body) -> bytes:
    """A ParametersItem: of a body, a query or a path."""
    name, place, required = parameter["name"], parameter["in"], parameter.get("required", False)
    if place == "body":
        body = _text(2, name) + _text(3, place) + _flag(4, required)
        return _part(1, _part(1, body + _part(5, _schema(parameter["schema"]))))
    about = _flag(1, required) + _text(2, place) + _text(4, name)
    if place == "query":
        return _part(1, _part(2, _part(3, about + _text(6, "string"))))
    return _part(1, _part(2, _part(4, about + _text(5, "string"))))


def _schema(schema: Schema) -> bytes:
    parts = [
        _text(number, schema[word]) for word, number in _SCHEMA_TEXTS.items() if schema.get(word)
    ]
    parts += [_text(19, each) for each in schema.get("required", ())]
    parts += [_part(20, _text(2, json.dumps(each))) for each in schema.get("enum", ())]
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        parts.append(_part(21, _part(1, _schema(more))))
    elif isinstance(more, bool):
        parts.append(_part(21, _flag(2, more)))
    if "type" in schema:
        parts.append(_part(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(_part(23, _part(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_part(25, _named_schemas(schema["properties"])))
    parts += _extensions(31, schema)
    return b"".join(parts)


def _named_schemas(named: dict[str, Schema]) -> bytes:
    each = (_text(1, name) + _part(2, _schema(schema)) for name, schema in named.items())
    return b"".join(_part(1, one) for one in each)


def _extensions(number: int, holder: dict[str, Any]) -> Iterator[bytes]:
    """Keywords that OpenAPI does not know, each as YAML, of which JSON is a part."""
    for name, value in holder.items():
        if name.startswith("x-"):
            written = _part(2, _text(2, json.dumps(value)))
            yield _part(number, _text(1, name) + written)


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _flag(number: int, value: bool) -> bytes:
    return bytes((number << 3, 1)) if value else b""


def _part(number: int, content: bytes) -> bytes:
    return _integer(number << 3 | 2) + _integer(len(content)) + content


def _integer(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes((*written, value))
