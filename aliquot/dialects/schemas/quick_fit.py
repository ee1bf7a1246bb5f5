"""Whether a manifest fits the schema of its kind, fast: most do, and need no list of misfits.

A dump has fifty thousand pods. So a schema is turned into structs once, and an object is converted
to them in C, unknown fields refused. What the structs cannot say, they refuse as well: a refusal
means only that the slow way (`misfits`) decides.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas.known_kinds import schema
from aliquot.dialects.schemas.misfits import EITHER, OPEN
from aliquot.json import Body

_BITS = {"int32": 31, "int64": 63}
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
"""The times that servers write."""
_PLAIN_WORDS = frozenset(("description", "default", "nullable", "type", "format", "title"))
_OF_OBJECTS = frozenset(("properties", "additionalProperties", "required", OPEN))
_OF_NUMBERS = frozenset(("minimum", "maximum"))


class _Never(msgspec.Struct):
    """A type that no value has: for keywords that structs cannot say."""

    never: str


@cache
def fits(api_version: str, kind: str) -> Callable[[Body], bool]:
    """The check of manifests of a known kind."""
    shape = schema(api_version, kind)
    assert shape is not None
    struct = _type(shape, {})

    def check(body: Body) -> bool:
        try:
            msgspec.convert(body, struct)
        except (msgspec.ValidationError, RecursionError):
            return False
        return True

    return check


def _type(shape: Schema, done: dict[int, Any]) -> Any:
    """The Python type of a schema; `done` are those of its parts, by identity."""
    if id(shape) not in done:
        found = _plain(shape, done)
        done[id(shape)] = found | None if shape.get("nullable") else found
    return done[id(shape)]


def _plain(shape: Schema, done: dict[int, Any]) -> Any:
    if shape.get(EITHER) or "oneOf" in shape:
        return _number_or_text(shape)
    match shape.get("type"):
        case "object" if _is_plain(shape, _OF_OBJECTS, "x-kubernetes-patch"):
            return _object(shape, done)
        case "array" if _is_plain(shape, {"items"}, "x-kubernetes-patch"):
            return list[_type(shape["items"], done)]  # type: ignore[misc]
        case "string" if _is_plain(shape, {"pattern", "enum"}):
            return _text(shape)
        case "integer" if _is_plain(shape, _OF_NUMBERS):
            bits = _BITS.get(shape.get("format", ""), 63)
            low, high = shape.get("minimum", -(2**bits)), shape.get("maximum", 2**bits - 1)
            return Annotated[int, msgspec.Meta(ge=low, le=high)]
        case "number" if _is_plain(shape, ()):
            return float
        case "boolean" if _is_plain(shape, ()):
            return bool
        case None if shape.keys() <= {OPEN, "nullable", "description"}:
            return Any
    return _Never


def _is_plain(shape: Schema, words: Any, prefix: str = "\n") -> bool:
    return all(key in _PLAIN_WORDS or key in words or key.startswith(prefix) for key in shape)


def _number_or_text(shape: Schema) -> Any:
    text = Annotated[str, msgspec.Meta(pattern=shape["pattern"])] if "pattern" in shape else str
    return text | int if shape.get(EITHER) else text | int | float


def _text(shape: Schema) -> Any:
    if "enum" in shape:
        return Literal[tuple(shape["enum"])]
    if shape.get("format") == "date-time":
        return Annotated[str, msgspec.Meta(pattern=_MOMENT)]
    return Annotated[str, msgspec.Meta(pattern=shape["pattern"])] if "pattern" in shape else str


def _object(shape: Schema, done: dict[int, Any]) -> Any:
    if "additionalProperties" in shape:
        return dict[str, _type(shape["additionalProperties"], done)]  # type: ignore[misc]
    if "properties" not in shape:
        return dict[str, Any] if shape.get(OPEN) else _Never
    needed = shape.get("required", ())
    names = {f"field_{number}": name for number, name in enumerate(shape["properties"])}
    fields: list[Any] = []
    for field, name in names.items():
        inner = _type(shape["properties"][name], done)
        if name in needed:
            fields.append((field, inner))
        else:
            fields.append((field, inner | None if inner is not Any else inner, None))
    fields.sort(key=len)
    is_open = bool(shape.get(OPEN))
    options: Any = {"rename": names, "forbid_unknown_fields": not is_open, "gc": False}
    return msgspec.defstruct("Shape", fields, **options)
