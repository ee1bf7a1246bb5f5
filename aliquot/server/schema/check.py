"""Objects against their schema: validation, pruning of unknown fields, defaults.

The schemas are structural, as those of a CustomResourceDefinition must be: so small a part of
OpenAPI that no library is needed. Messages are those of Kubernetes. Arguments are never changed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.json import Body, fresh, same, type_name
from aliquot.server.rules.causes import (
    Cause,
    duplicate,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
    wrong_type,
)
from aliquot.server.schema.quick_check import Fits, compiled

_KEPT = ("apiVersion", "kind", "metadata")
"""The fields of every object, whatever its schema says."""

_OPEN = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_COMBINED = frozenset(("allOf", "anyOf", "oneOf", "not"))
_OF_TEXT = frozenset(("maxLength", "minLength", "pattern", "format"))
_BITS = {"int32": 31, "int64": 63}
_MOST_SCHEMAS = 1000
"""Compiled schemas kept: far more than a cluster has; an updated definition adds a new one."""
_FITS: dict[int, tuple[Schema, Fits]] = {}


def check(schema: Schema, body: Any) -> list[Cause]:
    """All problems of an object, in the order of its fields."""
    if _fits(schema)(body):
        return []
    return list(_check(schema, body, ""))


def _fits(schema: Schema) -> Fits:
    """The compiled quick check of a schema, cached by the identity of the schema."""
    found = _FITS.get(id(schema))
    if found is None or found[0] is not schema:
        if len(_FITS) >= _MOST_SCHEMAS:
            _FITS.clear()
        fits = compiled(schema, lambda part, value: not any(_check(part, value, "")))
        found = _FITS[id(schema)] = (schema, fits)
    return found[1]


def _check(schema: Schema, value: Any, field: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    wanted = _wanted(schema)
    if wanted and not _is(value, wanted):
        name, words = type_name(value), ",".join(wanted)
        detail = f'{_place(field)} must be of type {words}: "{name}"'
        yield wrong_type(field or "<nil>", name, detail)
        return
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        known = (each if isinstance(each, str) else json.dumps(each) for each in schema["enum"])
        yield not_supported(field, value, known)
    match value:
        case str() if not _OF_TEXT.isdisjoint(schema):
            yield from _check_text(schema, value, field)
        case bool() | None:
            pass
        case int() | float():
            yield from _check_number(schema, value, field)
        case list():
            yield from _check_list(schema, value, field)
        case dict():
            yield from _check_object(schema, value, field)
    if not _COMBINED.isdisjoint(schema):
        yield from _check_combined(schema, value, field)


def _wanted(schema: Schema) -> list[str]:
    if schema.get(_EITHER):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _is(value: Any, wanted: list[str]) -> bool:
    name = type_name(value)
    if name == "number" and float(value).is_integer() and "integer" in wanted:
        return True
    return name in wanted or (name == "integer" and "number" in wanted)


def _check_text(schema: Schema, value: str, field: str) -> Iterator[Cause]:
    place = _place(field)
    if len(value) > schema.get("maxLength", len(value)):
        yield too_long(field, schema["maxLength"])
    if len(value) < schema.get("minLength", 0):
        yield invalid(field, value, f"{place} should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern and not _matcher(pattern)(value):
        yield invalid(field, value, f"{place} should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_moment(value):
        yield invalid(field, value, f"{place} must be of type date-time: {quoted(value)}")


def _check_number(schema: Schema, value: float, field: str) -> Iterator[Cause]:
    place, low, high = _place(field), schema.get("minimum"), schema.get("maximum")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        or_equal = "" if schema.get("exclusiveMinimum") else " or equal to"
        yield invalid(field, value, f"{place} should be greater than{or_equal} {low}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        or_equal = "" if schema.get("exclusiveMaximum") else " or equal to"
        yield invalid(field, value, f"{place} should be less than{or_equal} {high}")
    if (step := schema.get("multipleOf")) and value % step:
        yield invalid(field, value, f"{place} should be a multiple of {step}")
    bits = _BITS.get(schema.get("format", ""))
    if bits is not None and not -(2**bits) <= value < 2**bits:
        words = f"must be of type integer with format {schema['format']}"
        yield invalid(field, value, f"{place} {words}")


def _check_list(schema: Schema, value: list[Any], field: str) -> Iterator[Cause]:
    place = _place(field)
    if len(value) > schema.get("maxItems", len(value)):
        yield too_many(field, len(value), schema["maxItems"])
    if len(value) < schema.get("minItems", 0):
        yield invalid(field, len(value), f"{place} should have at least {schema['minItems']} items")
    items = schema.get("items")
    if isinstance(items, dict):
        for index, each in enumerate(value):
            yield from _check(items, each, f"{field}[{index}]")
    yield from _check_unique(schema, value, field)


def _check_unique(schema: Schema, value: list[Any], field: str) -> Iterator[Cause]:
    """The items of a set are unique; so are those of a map, by their keys."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: dict[str, int] = {}
    for index, each in enumerate(value):
        one = each
        if kind == "map":
            one = {key: each[key] for key in keys if key in each} if isinstance(each, dict) else {}
        text = json.dumps(one, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield duplicate(f"{field}[{index}]", one)


def _check_object(schema: Schema, value: Body, field: str) -> Iterator[Cause]:
    place = _place(field)
    if len(value) > schema.get("maxProperties", len(value)):
        yield too_many(field, len(value), schema["maxProperties"])
    if len(value) < schema.get("minProperties", 0):
        few = f"{place} should have at least {schema['minProperties']} properties"
        yield invalid(field, len(value), few)
    yield from (
        required(_inside(field, name)) for name in schema.get("required", ()) if name not in value
    )
    for name, each in value.items():
        inner = _schema_of(schema, name)
        if inner is not None:
            yield from _check(inner, each, _inside(field, name))


def _check_combined(schema: Schema, value: Any, field: str) -> Iterator[Cause]:
    """allOf, anyOf, oneOf and not; int-or-string is checked by its type already."""
    for each in schema.get("allOf", ()):
        yield from _check(each, value, field)
    if schema.get(_EITHER):
        return
    place = _place(field)
    fits = [not any(_check(each, value, "")) for each in schema.get("anyOf", ())]
    if fits and not any(fits):
        yield invalid(field, value, f"{place} must validate at least one schema (anyOf)")
    fits = [not any(_check(each, value, "")) for each in schema.get("oneOf", ())]
    if fits and sum(fits) != 1:
        yield invalid(field, value, f"{place} must validate one and only one schema (oneOf)")
    if "not" in schema and not any(_check(schema["not"], value, "")):
        yield invalid(field, value, f"{place} must not validate the schema (not)")


def prune(schema: Schema, body: Body) -> Body:
    """The object without the fields that its schema does not have."""
    kept = _pruned(schema, body, "", [], whole=True)
    assert isinstance(kept, dict)
    return kept


def unknown(schema: Schema, body: Body) -> list[str]:
    """The paths of the fields that pruning drops."""
    dropped: list[str] = []
    _pruned(schema, body, "", dropped, whole=True)
    return dropped


def _pruned(schema: Schema, value: Any, field: str, dropped: list[str], whole: bool) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return fresh(value)
        each = enumerate(value)
        return [_pruned(items, one, f"{field}[{at}]", dropped, whole=False) for at, one in each]
    if not isinstance(value, dict) or schema.get("additionalProperties") is True:
        return fresh(value)
    kept = {}
    whole = whole or bool(schema.get(_EMBEDDED))
    for name, one in value.items():
        inner, place = _schema_of(schema, name), _inside(field, name)
        if (whole and name in _KEPT) or (inner is None and schema.get(_OPEN)):
            kept[name] = fresh(one)
        elif inner is not None:
            kept[name] = _pruned(inner, one, place, dropped, whole=False)
        else:
            dropped.append(place)
    return kept


def fill_defaults(schema: Schema, body: Body) -> Body:
    """The object with the defaults of its schema, without nulls in fields that are not nullable."""
    filled = _filled(schema, body)
    assert isinstance(filled, dict)
    return filled


def _filled(schema: Schema, value: Any) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        return [_filled(items if isinstance(items, dict) else {}, each) for each in value]
    if not isinstance(value, dict):
        return value
    filled = {}
    for name, each in value.items():
        inner = _schema_of(schema, name)
        if each is not None or inner is None or inner.get("nullable"):
            filled[name] = _filled(inner or {}, each)
    for name, inner in schema.get("properties", {}).items():
        if name not in filled and "default" in inner:
            filled[name] = _filled(inner, fresh(inner["default"]))
    return filled


def _schema_of(schema: Schema, name: str) -> Schema | None:
    """The schema of a field; None if the field is unknown."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if name in properties:
        return properties[name]
    more = schema.get("additionalProperties")
    return more if isinstance(more, dict) else None


def _inside(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _place(field: str) -> str:
    return f"{field} in body" if field else "body"


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """The compiled pattern; one that Python cannot compile matches everything."""
    if pattern.endswith("$") and not pattern.endswith(r"\$"):
        pattern = rf"{pattern[:-1]}\Z"
    try:
        found = re.compile(pattern)
    except re.error:
        return lambda _: True
    return lambda text: found.search(text) is not None


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None and "T" in text.upper()
    except ValueError:
        return False
