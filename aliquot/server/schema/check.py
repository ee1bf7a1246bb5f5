"""Objects against their schema: causes of a refusal, pruning of unknown fields, defaults.

What does not fit is found by `dialects.schemas.misfits`, for `aliquot validate` as well; the words
are those of Kubernetes. Arguments are never changed.
"""

import json
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.dialects.schemas.kubernetes import record
from aliquot.dialects.schemas.misfits import (
    EMBEDDED,
    OBJECT,
    OPEN,
    Misfit,
    Steps,
    misfits,
    schema_of,
    unknown_fields,
)
from aliquot.json import Body, fresh, type_name
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

_MOST_SCHEMAS = 1000
"""Compiled schemas kept: far more than a cluster has; an updated definition adds a new one."""
_FITS: dict[int, tuple[Schema, Fits]] = {}
_COMBINED = {
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
    "not": "must not validate the schema (not)",
}


def check(schema: Schema, body: Any) -> list[Cause]:
    """All problems of an object, in the order of its fields."""
    if _fits(schema)(body):
        return []
    return [_cause(each) for each in misfits(schema, body)]


def _fits(schema: Schema) -> Fits:
    """The compiled quick check of a schema, cached by the identity of the schema."""
    found = _FITS.get(id(schema))
    if found is None or found[0] is not schema:
        if len(_FITS) >= _MOST_SCHEMAS:
            _FITS.clear()
        fits = compiled(schema, lambda part, value: not any(misfits(part, value)))
        found = _FITS[id(schema)] = (schema, fits)
    return found[1]


def path(steps: Steps) -> str:
    """A path as Kubernetes writes it: `spec.containers[0].image`."""
    words = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(words).removeprefix(".")


def _cause(found: Misfit) -> Cause:
    """A misfit as the cause of a refusal."""
    field, value, wanted = path(found.steps), found.value, found.wanted
    place = f"{field} in body" if field else "body"
    if found.rule in _COMBINED:
        return invalid(field, value, f"{place} {_COMBINED[found.rule]}")
    match found.rule:
        case "type":
            name = type_name(value)
            detail = f'{place} must be of type {",".join(wanted)}: "{name}"'
            return wrong_type(field or "<nil>", name, detail)
        case "enum":
            known = (each if isinstance(each, str) else json.dumps(each) for each in wanted)
            return not_supported(field, value, known)
        case "required":
            return required(field)
        case "unique":
            return duplicate(field, value)
        case "maxLength":
            return too_long(field, wanted)
        case "maxItems" | "maxProperties":
            return too_many(field, len(value), wanted)
        case "minItems" | "minProperties":
            things = {"minItems": "items", "minProperties": "properties"}[found.rule]
            return invalid(field, len(value), f"{place} should have at least {wanted} {things}")
    return invalid(field, value, f"{place} {_should(found)}")


def _should(found: Misfit) -> str:
    """What a text or number should be."""
    wanted, or_equal = found.wanted, "" if found.exclusive else " or equal to"
    match found.rule:
        case "minLength":
            return f"should be at least {wanted} chars long"
        case "pattern":
            return f"should match '{wanted}'"
        case "minimum":
            return f"should be greater than{or_equal} {wanted}"
        case "maximum":
            return f"should be less than{or_equal} {wanted}"
        case "multipleOf":
            return f"should be a multiple of {wanted}"
    if isinstance(found.value, str):
        return f"must be of type {wanted}: {quoted(found.value)}"
    return f"must be of type integer with format {wanted}"


def unknown(schema: Schema, body: Body) -> list[str]:
    """The paths of the fields that pruning drops."""
    return [path(each) for each in unknown_fields(schema, body, record("ObjectMeta"))]


def prune(schema: Schema, body: Body) -> Body:
    """The object without the fields that its schema does not have."""
    kept = _pruned(schema, body, whole=True)
    assert isinstance(kept, dict)
    if isinstance(kept.get("metadata"), dict):
        kept["metadata"] = _pruned(record("ObjectMeta"), kept["metadata"], whole=False)
    return kept


def _pruned(schema: Schema, value: Any, whole: bool) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return fresh(value)
        return [_pruned(items, one, whole=False) for one in value]
    if not isinstance(value, dict) or schema.get("additionalProperties") is True:
        return fresh(value)
    kept = {}
    whole = whole or bool(schema.get(EMBEDDED))
    for name, one in value.items():
        inner = schema_of(schema, name)
        if (whole and name in OBJECT) or (inner is None and schema.get(OPEN)):
            kept[name] = fresh(one)
        elif inner is not None:
            kept[name] = _pruned(inner, one, whole=False)
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
        inner = schema_of(schema, name)
        if each is not None or inner is None or inner.get("nullable"):
            filled[name] = _filled(inner or {}, each)
    for name, inner in schema.get("properties", {}).items():
        if name not in filled and "default" in inner:
            filled[name] = _filled(inner, fresh(inner["default"]))
    return filled
