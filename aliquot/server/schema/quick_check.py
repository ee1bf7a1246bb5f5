"""Whether an object fits its schema, fast: most objects do, and need no list of problems.

A schema is compiled into closures once. Keywords that are rare in schemas are left to the slow
check, so that both always agree.
"""

from collections.abc import Callable
from typing import Any

from aliquot.dialects.core.schema import Schema

Fits = Callable[[Any], bool]
Slow = Callable[[Schema, Any], bool]

_KNOWN = frozenset(
    {
        "additionalProperties",
        "default",
        "description",
        "format",
        "items",
        "maxLength",
        "minLength",
        "minimum",
        "maximum",
        "nullable",
        "properties",
        "required",
        "title",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-patch-merge-key",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-preserve-unknown-fields",
    }
)
_SAYS_SOMETHING = frozenset(
    {
        "additionalProperties",
        "items",
        "maximum",
        "maxLength",
        "minimum",
        "minLength",
        "properties",
        "required",
        "x-kubernetes-int-or-string",
    }
)
_BITS = {"int32": 31, "int64": 63}


def compiled(schema: Schema, slow: Slow) -> Fits:
    """The compiled check of a schema; `slow` checks the keywords that are not compiled."""
    fits = _compiled(schema, slow)
    if schema.get("nullable"):
        return lambda value: value is None or fits(value)
    return fits


def _compiled(schema: Schema, slow: Slow) -> Fits:
    kind = schema.get("type")
    if kind == "object" and schema.keys() <= _KNOWN:
        return _object(schema, slow)
    if kind == "array" and schema.keys() <= _KNOWN:
        return _array(schema, slow)
    if kind == "boolean" and schema.keys() <= _KNOWN:
        return lambda value: value is True or value is False
    if kind == "integer" and schema.keys() <= _KNOWN and "." not in str(schema.get("minimum", "")):
        return _integer(schema)
    if kind == "string" and schema.keys() <= _KNOWN and "format" not in schema:
        return _text(schema)
    if not kind and not schema.keys() & _SAYS_SOMETHING and schema.keys() <= _KNOWN:
        return lambda value: True
    return lambda value: slow(schema, value)


def _text(schema: Schema) -> Fits:
    low, high = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    if not low and high == float("inf"):
        return lambda value: type(value) is str
    return lambda value: type(value) is str and low <= len(value) <= high


def _integer(schema: Schema) -> Fits:
    bits = _BITS.get(schema.get("format", ""), 1000)
    low = max(schema.get("minimum", -(2**bits)), -(2**bits))
    high = min(schema.get("maximum", 2**bits - 1), 2**bits - 1)
    return lambda value: type(value) is int and low <= value <= high


def _array(schema: Schema, slow: Slow) -> Fits:
    items = schema.get("items")
    if not isinstance(items, dict):
        return lambda value: type(value) is list
    fits = compiled(items, slow)
    return lambda value: type(value) is list and all(map(fits, value))


def _object(schema: Schema, slow: Slow) -> Fits:
    fields = {name: compiled(each, slow) for name, each in schema.get("properties", {}).items()}
    more = schema.get("additionalProperties")
    other = compiled(more, slow) if isinstance(more, dict) else None
    required = tuple(schema.get("required", ()))

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for name, each in value.items():
            rule = fields.get(name, other)
            if rule is not None and not rule(each):
                return False
        return True

    return fits
