"""Writes the table of Kubernetes' types anew, from its published OpenAPI: a maintainer's tool.

`python tools/kubernetes_types.py SWAGGER VERSION` reads `api/openapi-spec/swagger.json` of a
release such as 1.35. It takes names and types of fields, and how lists and maps are merged.
`aliquot.dialects.schemas.kubernetes` has the form of the table.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

Definition = dict[str, Any]

_TABLE = Path(__file__).parent.parent / "aliquot/dialects/schemas/kubernetes.json"
_PLAIN = {
    "api.resource.Quantity": "quantity",
    "util.intstr.IntOrString": "int-or-string",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "time",
    "meta.v1.FieldsV1": "any",
    "runtime.RawExtension": "any",
    "v1.JSON": "any",
    "v1.JSONSchemaProps": "any",
    "v1.JSONSchemaPropsOrArray": "any",
    "v1.JSONSchemaPropsOrBool": "any",
    "v1.JSONSchemaPropsOrStringArray": "any",
}
"""Definitions that are no records, or nest without end, by the end of their name."""
_SCALARS = {
    ("string", "date-time"): "time",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "number",
}
_NOT_OBJECTS = {"DeleteOptions", "WatchEvent", "Status", "APIGroup", "APIVersions"}
_MERGED = "x-kubernetes-patch-merge-key"
_STRATEGY = "x-kubernetes-patch-strategy"
_LIST = "x-kubernetes-list-type"
_KEYS = "x-kubernetes-list-map-keys"
_MAP = "x-kubernetes-map-type"


def main(swagger: Path, version: str) -> None:
    """Read the definitions and write the types that objects are made of."""
    definitions = json.loads(swagger.read_text())["definitions"]
    kinds = {
        f"{_api_version(each)} {each['kind']}": name
        for name, definition in definitions.items()
        for each in definition.get("x-kubernetes-group-version-kind", ())
        if each["kind"] not in _NOT_OBJECTS and not each["kind"].endswith("List")
    }
    reached = _reached(definitions, kinds.values())
    short = _short_names(reached)
    types = {
        short[name]: {
            field: _type(each, definitions, short)
            for field, each in (definitions[name].get("properties") or {}).items()
            if not (field in ("apiVersion", "kind") and name in kinds.values())
        }
        for name in reached
    }
    _write(version, {key: short[name] for key, name in kinds.items()}, types)


def _write(version: str, kinds: dict[str, str], types: dict[str, Any]) -> None:
    """Write one type a line, so that a difference between releases can be read."""
    lines = [f'"version": {json.dumps(version)},', f'"kinds": {_compact(kinds)},', '"types": {']
    each = [f"{json.dumps(name)}: {_compact(types[name])}" for name in sorted(types)]
    _TABLE.write_text("{\n" + "\n".join(lines) + "\n" + ",\n".join(each) + "\n}\n}\n")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _api_version(identity: dict[str, str]) -> str:
    return f"{identity['group']}/{identity['version']}".removeprefix("/")


def _reached(definitions: dict[str, Definition], roots: Any) -> list[str]:
    """The records that are part of a kind."""
    reached: dict[str, None] = {}
    wanted = list(roots)
    while wanted:
        name = wanted.pop()
        if name in reached or _plain(name):
            continue
        reached[name] = None
        for field in (definitions[name].get("properties") or {}).values():
            wanted += [each for each in (_reference(field),) if each is not None]
    return sorted(reached)


def _reference(field: Definition) -> str | None:
    """The record that a field is, or holds in a list or map."""
    while "$ref" not in field:
        inner = field.get("items") or field.get("additionalProperties")
        if not isinstance(inner, dict):
            return None
        field = inner
    return str(field["$ref"]).rpartition("/")[2]


def _short_names(names: list[str]) -> dict[str, str]:
    """`PodSpec` where only one type has the name; else `events.v1.Event`."""
    last = Counter(name.rpartition(".")[2] for name in names)
    return {
        name: name.rpartition(".")[2]
        if last[name.rpartition(".")[2]] == 1
        else ".".join(name.split(".")[-3:])
        for name in names
    }


def _type(field: Definition, definitions: dict[str, Definition], short: dict[str, str]) -> str:
    """A field's type, followed by how it is merged."""
    words = [_plain_type(field, short)]
    if field.get(_LIST) == "map":
        words.append(f"map:{','.join(field[_KEYS])}")
    elif field.get(_LIST) == "set":
        words.append("set")
    reference = str(field.get("$ref", "")).rpartition("/")[2]
    about = definitions.get(reference, {})
    if "atomic" in (field.get(_MAP), about.get(_MAP)):
        words.append("atomic")
    if _STRATEGY in field:
        words.append(f"{field[_STRATEGY].replace(',', '+')}:{field.get(_MERGED, '')}".rstrip(":"))
    return " ".join(words)


def _plain_type(field: Definition, short: dict[str, str]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return _plain(name) or short[name]
    kind = field.get("type")
    if kind == "array":
        return f"[{_plain_type(field['items'], short)}]"
    if kind == "object":
        more = field.get("additionalProperties")
        return f"{{{_plain_type(more, short)}}}" if more else "any"
    return _SCALARS.get((kind, field.get("format")), str(kind))


def _plain(name: str) -> str | None:
    return next((word for end, word in _PLAIN.items() if name.endswith(f".{end}")), None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
