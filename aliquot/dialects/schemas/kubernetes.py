"""Kubernetes' own kinds, of one release, with all of their fields.

`kubernetes.json` has them as a table: by api version and kind the type, by type and field the type
of the field. `[T]` is a list, `{T}` a map from text; what is no scalar stands in the table itself.
After it stand, as far as they are known: `map:KEYS` or `set` for how server-side apply merges a
list, `atomic` for a map or record that it replaces, and the strategy of strategic merge patches,
with the merge key (`merge:name`). `tools/kubernetes_types.py` writes the table.

`aliquot validate` and the embedded API server both read their schemas from here.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from aliquot.dialects.core import schema as shape
from aliquot.dialects.core.schema import QUANTITY_PATTERN, Schema
from aliquot.dialects.schemas.descriptions import DESCRIPTIONS

Fields = dict[str, str]
"""The types of the fields of a record, by name."""

_SCALARS: dict[str, Schema] = {
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "boolean": shape.flag(),
    "int-or-string": shape.number_or_text(),
    "int32": shape.whole(),
    "int64": shape.long(),
    "number": {"type": "number"},
    "quantity": {
        "oneOf": [{"type": "string"}, {"type": "number"}],
        "pattern": QUANTITY_PATTERN,
    },
    "string": shape.text(),
    "time": shape.moment(),
}


@cache
def _table() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((files(__package__) / "kubernetes.json").read_text())
    return read


def version() -> str:
    """The release of Kubernetes whose kinds these are, such as `1.35`."""
    return str(_table()["version"])


def kinds() -> dict[tuple[str, str], str]:
    """The type of every kind, by api version and kind."""
    found = {}
    for name, type_name in _table()["kinds"].items():
        api_version, _, kind = name.partition(" ")
        found[api_version, kind] = type_name
    return found


def fields(name: str) -> Fields:
    """The fields of a record, each with its type and how it is merged, as in the table."""
    found: Fields = _table()["types"][name]
    return found


@cache
def schema(api_version: str, kind: str) -> Schema | None:
    """The schema of a kind, as requests are read: null counts as absent. None if it is unknown."""
    name = _table()["kinds"].get(f"{api_version} {kind}")
    if name is None:
        return None
    return {**record(name), "nullable": False}


@cache
def record(name: str) -> Schema:
    """The schema of a record, such as `PodSpec`."""
    properties = {
        field: {**_type(written), **_description(name, field)}
        for field, written in fields(name).items()
    }
    if name in _table()["kinds"].values():
        properties = {**_identity(), **properties}
    return {**shape.record(properties), **_description(name, ""), "nullable": True}


def _identity() -> dict[str, Schema]:
    """The fields that name a kind; an object inside another one, such as a claim, may have them."""
    return {
        "apiVersion": shape.text("The group and version of this shape of the object."),
        "kind": shape.text("The kind of the object."),
    }


def _description(name: str, field: str) -> Schema:
    words = DESCRIPTIONS.get(name, {}).get(field)
    return {"description": words} if words else {}


def _type(written: str) -> Schema:
    """The schema of a field, from its type and how it is merged."""
    name, *merged = written.split(" ")
    found = {**_of(name), "nullable": True}
    for word in merged:
        found.update(_merged(word))
    return found


def _of(name: str) -> Schema:
    if name.startswith("["):
        return shape.listed({**_of(name[1:-1]), "nullable": False})
    if name.startswith("{"):
        return shape.mapped({**_of(name[1:-1]), "nullable": True})
    return _SCALARS.get(name) or record(name)


def _merged(word: str) -> Schema:
    """The keywords of strategic merge patches.

    How server-side apply merges is not among them: a CustomResourceDefinition that says `map` has
    its lists checked for duplicates, which Kubernetes' own kinds have not.
    """
    how, _, key = word.partition(":")
    if how in ("map", "set", "atomic"):
        return {}
    by = {"x-kubernetes-patch-merge-key": key} if key else {}
    return {**by, "x-kubernetes-patch-strategy": how.replace("+", ",")}
