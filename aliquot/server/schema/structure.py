"""The structure of a kind as server-side apply needs it: which parts of an object have one owner.

A field of a record and an entry of a map can each be managed by somebody else; so can an item of a
list that is a set or a map by keys. Everything else is one value: a scalar, and any list or record
that is atomic. `merging.json` has these facts for Kubernetes' own kinds, by message; the schema of
a CustomResourceDefinition has them in its `x-kubernetes-` keywords.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from aliquot.dialects.core.schema import Schema
from aliquot.server.schema.protobuf import messages, root

ABSENT: Any = type("Absent", (), {"__slots__": (), "__repr__": lambda _: "ABSENT"})()
"""The value of a field that is not there; null is a value."""

_SCALARS = frozenset(
    {
        *("string", "bytes", "bool", "int32", "int64", "double"),
        *("Quantity", "IntOrString", "Time", "MicroTime"),
    }
)
_ZEROS = {"int32": 0, "int64": 0, "bool": False, "double": 0}
_STRUCTS = {"Time": None, "MicroTime": None, "Quantity": "0", "IntOrString": 0}
"""Scalars that are records in Go, with their zero: these are written even if they are empty."""
_OMITTED = "creationTimestamp"
"""The one record that is left out if it is empty: of a pod template, for example."""
_STRIPPED_METADATA = frozenset(
    {
        *("name", "namespace", "creationTimestamp", "selfLink", "uid"),
        *("generation", "managedFields", "resourceVersion"),
    }
)
"""Fields of an object's own metadata that no manager owns: they are its identity, or the server's.
"""
_MOST_SCHEMAS = 1000
"""Structures of custom schemas kept: more than a cluster has; an updated definition adds one."""


@dataclass(slots=True, eq=False)
class Structure:
    """How one value is split among managers."""

    sort: Literal["scalar", "record", "list", "any"]
    """`any`: whatever the value is; its records are split, its lists are not."""
    scalar: Literal["", "string", "numeric", "boolean"] = ""
    """The type of a scalar; empty if it may be of several."""
    fields: dict[str, "Field"] = field(default_factory=dict)
    """The declared fields of a record."""
    items: "Structure | None" = None
    """The structure of the other entries of a record, or of the items of a list."""
    atomic: bool = False
    keys: tuple[str, ...] = ()
    """The fields that identify an item of a list; a list without keys that is split is a set."""
    key_defaults: dict[str, Any] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    """The declared fields that Kubernetes writes even if they were not given."""
    stripped: frozenset[str] = frozenset()
    """Fields that no manager owns."""

    def splits(self, value: Any) -> bool:
        """Do the parts of this value have owners of their own?"""
        if isinstance(value, dict):
            return self.sort in ("record", "any") and not self.atomic
        return isinstance(value, list) and self.sort == "list" and not self.atomic

    def of(self, name: str) -> "Structure | None":
        """The structure of a field of a record; None if there is no such field."""
        found = self.fields.get(name)
        return self.items if found is None else found.structure


@dataclass(slots=True, eq=False)
class Field:
    """A declared field of a record, and how Kubernetes writes it if it is empty."""

    structure: Structure
    zero: Any = ABSENT
    """Its value if it was not given."""
    empty: tuple[Any, ...] = ()
    """Values that count as not given."""

    def read(self, value: Any) -> Any:
        """The value as Kubernetes has it."""
        if value is ABSENT:
            return self.zero
        return self.zero if value in self.empty else value


SCALAR = Structure("scalar")
_TEXT, _NUMBER = Structure("scalar", "string"), Structure("scalar", "numeric")
_FLAG = Structure("scalar", "boolean")
_BY_TYPE = {
    **{"string": _TEXT, "bytes": _TEXT, "bool": _FLAG, "boolean": _FLAG, "integer": _NUMBER},
    **{"int32": _NUMBER, "int64": _NUMBER, "double": _NUMBER, "number": _NUMBER},
}
ANY = Structure("any")
ANY.items = ANY
_ATOMIC = Structure("list", atomic=True)


def of_kind(api_version: str, name: str, schema: Schema | None) -> Structure:
    """The structure of a kind, by its custom schema if it has one."""
    if schema is not None:
        return _of_custom(schema)
    message = root(api_version, name)
    return _of_built_in(message) if message is not None else _of_custom({})


@cache
def _of_built_in(message: str) -> Structure:
    whole = _record(message)
    own = Structure("record", fields=dict(whole.fields), always=whole.always)
    own.fields["metadata"] = Field(_metadata(), {})
    own.fields["apiVersion"] = own.fields["kind"] = Field(SCALAR)
    own.stripped = frozenset({"apiVersion", "kind"})
    return own


@cache
def _metadata() -> Structure:
    shape = _record("ObjectMeta")
    always = tuple(name for name in shape.always if name not in _STRIPPED_METADATA)
    return Structure("record", fields=shape.fields, always=always, stripped=_STRIPPED_METADATA)


@cache
def _facts() -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = json.loads((files(__package__) / "merging.json").read_text())
    return facts


_RECORDS: dict[str, Structure] = {}


def _record(message: str) -> Structure:
    """The structure of a message; one of itself again, so that messages may nest in themselves."""
    found = _RECORDS.get(message)
    if found is None:
        found = _RECORDS[message] = Structure("record")
        found.atomic = bool(_facts().get(message, {}).get("atomic"))
        _add_fields(found, message)
        found.always = tuple(name for name, each in found.fields.items() if each.zero is not ABSENT)
    return found


def _add_fields(record: Structure, message: str) -> None:
    facts = _facts().get(message, {})
    always = facts.get("always", ())
    for name, kind, how in messages()[message].values():
        if how == "inline":
            _add_fields(record, kind)
        else:
            record.fields[name] = _field(facts, name, kind, how, name in always)


def _field(facts: dict[str, Any], name: str, kind: str, how: str, always: bool) -> Field:
    plain = kind in _SCALARS
    one = _BY_TYPE.get(kind, SCALAR) if plain else _record(kind) if kind in messages() else ANY
    if how == "repeated":
        keys = facts.get("lists", {}).get(name)
        shape = _ATOMIC if keys is None else _list(one, tuple(keys), kind)
        return Field(shape, None) if always else Field(shape, ABSENT, (None, []))
    if how == "map":
        shape = Structure("record", items=one, atomic=name in facts.get("maps", ()))
        return Field(shape, None) if always else Field(shape, ABSENT, (None, {}))
    if name in facts.get("maps", ()):
        one = Structure("record", fields=one.fields, atomic=True)
    if how == "pointer" or kind in ("RawExtension", "FieldsV1"):
        return Field(one, None if always else ABSENT, () if always else (None,))
    if kind in _STRUCTS and name != _OMITTED:
        return Field(one, _STRUCTS[kind])
    if not plain:
        return Field(one, {}, (None,))
    zero = _ZEROS.get(kind, "")
    return Field(one, zero, (None,)) if always else Field(one, ABSENT, (None, zero))


def _list(items: Structure, keys: tuple[str, ...], kind: str) -> Structure:
    """A list whose items are told apart by keys; a key that is always written has a default."""
    defaults = {name: each.zero for name, each in items.fields.items() if name in keys}
    defaults |= _facts().get(kind, {}).get("defaults", {})
    known = {key: each for key, each in defaults.items() if key in keys and each is not ABSENT}
    return Structure("list", items=items, keys=keys, key_defaults=known)


_CUSTOM: dict[int, tuple[Schema, Structure]] = {}


def _of_custom(schema: Schema) -> Structure:
    """The structure of a custom kind, cached by the identity of its schema."""
    found = _CUSTOM.get(id(schema))
    if found is None or found[0] is not schema:
        if len(_CUSTOM) >= _MOST_SCHEMAS:
            _CUSTOM.clear()
        shape = _shape(schema)
        fields = {
            **shape.fields,
            "apiVersion": Field(SCALAR),
            "kind": Field(SCALAR),
            "metadata": Field(_untyped_metadata(), {}),
        }
        whole = Structure("record", fields=fields, items=shape.items)
        whole.stripped = frozenset({"apiVersion", "kind"})
        found = _CUSTOM[id(schema)] = (schema, whole)
    return found[1]


@cache
def _untyped_metadata() -> Structure:
    """Metadata of a custom object: the same parts, kept as they are given."""
    fields = {name: Field(each.structure) for name, each in _record("ObjectMeta").fields.items()}
    return Structure("record", fields=fields, stripped=_STRIPPED_METADATA)


def _shape(schema: Schema) -> Structure:
    if schema.get("x-kubernetes-int-or-string"):
        return SCALAR
    sort = schema.get("type")
    if sort == "array":
        return _custom_list(schema)
    if sort == "object" or "properties" in schema or "additionalProperties" in schema:
        return _custom_record(schema)
    return ANY if sort is None else _BY_TYPE.get(sort, SCALAR)


def _custom_list(schema: Schema) -> Structure:
    how = schema.get("x-kubernetes-list-type", "atomic")
    items = schema.get("items")
    if how == "atomic" or not isinstance(items, dict):
        return _ATOMIC
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if how == "map" else ()
    given = items.get("properties", {})
    defaults = {key: given[key]["default"] for key in keys if "default" in given.get(key, {})}
    return Structure("list", items=_shape(items), keys=keys, key_defaults=defaults)


def _custom_record(schema: Schema) -> Structure:
    more = schema.get("additionalProperties")
    items: Structure | None = None
    if isinstance(more, dict):
        items = _shape(more)
    elif more is True or schema.get("x-kubernetes-preserve-unknown-fields"):
        items = ANY
    if not schema.get("properties") and items is ANY:
        return Structure("any", items=ANY, atomic=_is_atomic(schema))
    fields = {name: Field(_shape(each)) for name, each in schema.get("properties", {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        about = {"apiVersion": SCALAR, "kind": SCALAR, "metadata": ANY}
        fields = {**{name: Field(each) for name, each in about.items()}, **fields}
    return Structure("record", fields=fields, items=items, atomic=_is_atomic(schema))


def _is_atomic(schema: Schema) -> bool:
    return schema.get("x-kubernetes-map-type") == "atomic"
