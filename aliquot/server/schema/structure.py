"""The structure of a kind as server-side apply needs it: which parts of an object have one owner.

A field of a record and an entry of a map can each be managed by somebody else; so can an item of a
list that is a set or a map by keys. Everything else is one value: a scalar, and any list or record
that is atomic. `dialects.schemas.kubernetes` has these facts for Kubernetes' own kinds, the schema
of a CustomResourceDefinition in its `x-kubernetes-` keywords.

Kubernetes writes some empty fields and leaves others out, and compares objects as it writes them.
`go_types` knows which.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas import kubernetes
from aliquot.server.schema.go_types import go_type

ABSENT: Any = type("Absent", (), {"__slots__": (), "__repr__": lambda _: "ABSENT"})()
"""The value of a field that is not there; null is a value."""

_ZEROS: dict[str, Any] = {
    **{"string": "", "boolean": False, "int32": 0, "int64": 0, "number": 0},
    **{"time": None, "quantity": "0", "int-or-string": 0},
}
"""What Kubernetes writes for an empty scalar that it does not leave out."""
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

    def __post_init__(self) -> None:
        """Write the keys of the fields."""
        for name, each in self.fields.items():
            each.key = f'"f:{name}":'

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
    key: str = ""
    """Its path element as the key of a JSON object: `"f:name":`."""

    def read(self, value: Any) -> Any:
        """The value as Kubernetes has it."""
        if value is ABSENT:
            return self.zero
        return self.zero if value in self.empty else value


SCALAR = Structure("scalar")
_TEXT, _NUMBER = Structure("scalar", "string"), Structure("scalar", "numeric")
_FLAG = Structure("scalar", "boolean")
_BY_TYPE = {
    **{"string": _TEXT, "boolean": _FLAG, "integer": _NUMBER, "number": _NUMBER},
    **{"int32": _NUMBER, "int64": _NUMBER},
}
ANY = Structure("any")
ANY.items = ANY
_ATOMIC = Structure("list", items=ANY, atomic=True)


def of_kind(api_version: str, name: str, schema: Schema | None) -> Structure:
    """The structure of a kind, by its custom schema if it has one."""
    if schema is not None:
        return _of_custom(schema)
    return _of_built_in(api_version, name) or _of_custom(_NO_SCHEMA)


@cache
def _of_built_in(api_version: str, name: str) -> Structure | None:
    type_name = kubernetes.kinds().get((api_version, name))
    if type_name is None:
        return None
    whole = _record(type_name)
    own = Structure("record", fields=dict(whole.fields), always=whole.always)
    own.fields["metadata"] = Field(_metadata(), {}, (), '"f:metadata":')
    own.fields["apiVersion"] = own.fields["kind"] = Field(SCALAR)
    own.stripped = frozenset({"apiVersion", "kind"})
    return own


@cache
def _metadata() -> Structure:
    fields = _record("ObjectMeta").fields
    return Structure("record", fields=fields, stripped=_STRIPPED_METADATA)


_RECORDS: dict[str, Structure] = {}


def _record(name: str) -> Structure:
    """The structure of a type; one of itself again, so that types may nest in themselves."""
    found = _RECORDS.get(name)
    if found is None:
        found = _RECORDS[name] = Structure("record")
        facts = go_type(name)
        found.atomic = facts.atomic
        for word, written in kubernetes.fields(name).items():
            part = _part(*written.split(" "))
            found.fields[word] = _field(part, written, word in facts.always, word in facts.pointers)
        found.always = tuple(word for word in found.fields if word in facts.always)
        found.__post_init__()
    return found


def _field(part: Structure, written: str, always: bool, pointer: bool) -> Field:
    """A field and what Kubernetes makes of it if it is empty."""
    if always:
        record = part.sort == "record" and written[0] != "{" and not pointer
        zero = {} if record else None if pointer else _ZEROS.get(written.split(" ")[0])
        return Field(part, zero, () if zero is None else (None,))
    if pointer or part.sort == "any":
        return Field(part, ABSENT, (None,))
    if part.sort == "scalar":
        return Field(part, ABSENT, (None, _ZEROS[written.split(" ")[0]]))
    return Field(part, ABSENT, (None, [] if part.sort == "list" else {}))


def _part(name: str, *merged: str) -> Structure:
    """The structure of a type in the words of `kubernetes.json`."""
    if name.startswith("["):
        keys = next((word[4:].split(",") for word in merged if word.startswith("map:")), None)
        if keys is None and "set" not in merged:
            return Structure("list", items=_part(name[1:-1]), atomic=True)
        return _list(_part(name[1:-1]), tuple(keys or ()), name[1:-1])
    if name.startswith("{"):
        return Structure("record", items=_part(name[1:-1]), atomic="atomic" in merged)
    if name == "any":
        return ANY
    if name in _ZEROS:
        return _BY_TYPE.get(name, SCALAR)
    return _record(name)


def _list(items: Structure, keys: tuple[str, ...], kind: str) -> Structure:
    """A list whose items are told apart by keys; a key that is always written has a default."""
    defaults = {name: each.zero for name, each in items.fields.items() if name in keys}
    defaults |= go_type(kind).defaults
    known = {key: each for key, each in defaults.items() if key in keys and each is not ABSENT}
    return Structure("list", items=items, keys=keys, key_defaults=known)


_NO_SCHEMA: Schema = {"x-kubernetes-preserve-unknown-fields": True, "type": "object"}
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
