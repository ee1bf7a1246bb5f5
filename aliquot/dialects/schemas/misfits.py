"""Where an object does not fit the schema of its kind: every place, never only the first.

The schemas are structural, as those of a CustomResourceDefinition must be: so small a part of
OpenAPI that no library is needed. A misfit is a value, not a sentence: the embedded API server puts
it in the words of kube-apiserver, `aliquot validate` in plain ones. Arguments are never changed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.json import Body, same, type_name


class Key(str):
    """A key of a map, which may be any text; other text in a path is the name of a field."""

    __slots__ = ()


Steps = tuple[str | int, ...]
"""The path to a value: names of fields, keys of maps and indexes of lists."""

OBJECT = ("apiVersion", "kind", "metadata")
"""The fields of every object, whatever its schema says."""
OPEN = "x-kubernetes-preserve-unknown-fields"
EITHER = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"

_COMBINED = frozenset(("allOf", "anyOf", "oneOf", "not"))
_OF_TEXT = frozenset(("maxLength", "minLength", "pattern", "format"))
_BITS = {"int32": 31, "int64": 63}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a schema does not allow."""

    steps: Steps
    rule: str
    """The keyword of the schema that refuses it, such as `type` or `maximum`."""
    value: Any
    wanted: Any
    """What the keyword says: the types, the words, the bound."""
    exclusive: bool = False
    """Is a bound itself excluded?"""


def misfits(schema: Schema, value: Any, steps: Steps = ()) -> Iterator[Misfit]:
    """Every misfit of an object, in the order of its fields; unknown fields are none."""
    if value is None and schema.get("nullable"):
        return
    wanted = _types(schema)
    if wanted and not _is(value, wanted):
        yield Misfit(steps, "type", value, wanted)
        return
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        yield Misfit(steps, "enum", value, schema["enum"])
    match value:
        case str() if not _OF_TEXT.isdisjoint(schema):
            yield from _text(schema, value, steps)
        case bool() | None:
            pass
        case int() | float():
            yield from _number(schema, value, steps)
        case list():
            yield from _list(schema, value, steps)
        case dict():
            yield from _object(schema, value, steps)
    if not _COMBINED.isdisjoint(schema):
        yield from _combined(schema, value, steps)


def _types(schema: Schema) -> list[str]:
    if schema.get(EITHER):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _is(value: Any, wanted: list[str]) -> bool:
    name = type_name(value)
    if name == "number" and float(value).is_integer() and "integer" in wanted:
        return True
    return name in wanted or (name == "integer" and "number" in wanted)


def _text(schema: Schema, value: str, steps: Steps) -> Iterator[Misfit]:
    if len(value) > schema.get("maxLength", len(value)):
        yield Misfit(steps, "maxLength", value, schema["maxLength"])
    if len(value) < schema.get("minLength", 0):
        yield Misfit(steps, "minLength", value, schema["minLength"])
    pattern = schema.get("pattern")
    if pattern and not _matcher(pattern)(value):
        yield Misfit(steps, "pattern", value, pattern)
    if schema.get("format") == "date-time" and not _is_moment(value):
        yield Misfit(steps, "format", value, "date-time")


def _number(schema: Schema, value: float, steps: Steps) -> Iterator[Misfit]:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    if low is not None and (value <= low if above else value < low):
        yield Misfit(steps, "minimum", value, low, above)
    if high is not None and (value >= high if below else value > high):
        yield Misfit(steps, "maximum", value, high, below)
    if (step := schema.get("multipleOf")) and value % step:
        yield Misfit(steps, "multipleOf", value, step)
    bits = _BITS.get(schema.get("format", ""))
    if bits is not None and not -(2**bits) <= value < 2**bits:
        yield Misfit(steps, "format", value, schema["format"])


def _list(schema: Schema, value: list[Any], steps: Steps) -> Iterator[Misfit]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Misfit(steps, "maxItems", value, schema["maxItems"])
    if len(value) < schema.get("minItems", 0):
        yield Misfit(steps, "minItems", value, schema["minItems"])
    items = schema.get("items")
    if isinstance(items, dict):
        for index, each in enumerate(value):
            yield from misfits(items, each, (*steps, index))
    yield from _duplicates(schema, value, steps)


def _duplicates(schema: Schema, value: list[Any], steps: Steps) -> Iterator[Misfit]:
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
            yield Misfit((*steps, index), "unique", one, keys)


def _object(schema: Schema, value: Body, steps: Steps) -> Iterator[Misfit]:
    if len(value) > schema.get("maxProperties", len(value)):
        yield Misfit(steps, "maxProperties", value, schema["maxProperties"])
    if len(value) < schema.get("minProperties", 0):
        yield Misfit(steps, "minProperties", value, schema["minProperties"])
    for name in schema.get("required", ()):
        if name not in value:
            yield Misfit((*steps, name), "required", None, True)
    for name, each in value.items():
        inner = schema_of(schema, name)
        if inner is not None:
            yield from misfits(inner, each, (*steps, step(schema, name)))


def _combined(schema: Schema, value: Any, steps: Steps) -> Iterator[Misfit]:
    """allOf, anyOf, oneOf and not; int-or-string is checked by its type already."""
    for each in schema.get("allOf", ()):
        yield from misfits(each, value, steps)
    if schema.get(EITHER):
        return
    fits = [not any(misfits(each, value)) for each in schema.get("anyOf", ())]
    if fits and not any(fits):
        yield Misfit(steps, "anyOf", value, None)
    fits = [not any(misfits(each, value)) for each in schema.get("oneOf", ())]
    if fits and sum(fits) != 1:
        yield Misfit(steps, "oneOf", value, None)
    if "not" in schema and not any(misfits(schema["not"], value)):
        yield Misfit(steps, "not", value, None)


def unknown_fields(schema: Schema, body: Body, metadata: Schema | None = None) -> list[Steps]:
    """The paths of the fields that a schema does not have; `metadata` are checked by their own."""
    found: list[Steps] = []
    _walk(schema, body, (), found, whole=True)
    inner = body.get("metadata")
    if metadata is not None and isinstance(inner, dict):
        _walk(metadata, inner, ("metadata",), found, whole=False)
    return found


def _walk(schema: Schema, value: Any, steps: Steps, found: list[Steps], whole: bool) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, each in enumerate(value):
                _walk(items, each, (*steps, index), found, whole=False)
    if not isinstance(value, dict) or schema.get("additionalProperties") is True:
        return
    whole = whole or bool(schema.get(EMBEDDED))
    for name, each in value.items():
        inner = schema_of(schema, name)
        if (whole and name in OBJECT) or (inner is None and schema.get(OPEN)):
            continue
        if inner is None:
            found.append((*steps, name if isinstance(name, str) else Key(name)))
        elif isinstance(each, dict | list):
            _walk(inner, each, (*steps, step(schema, name)), found, whole=False)


def schema_of(schema: Schema, name: str) -> Schema | None:
    """The schema of a field; None if the field is unknown."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if name in properties:
        return properties[name]
    more = schema.get("additionalProperties")
    return more if isinstance(more, dict) else None


def step(schema: Schema, name: str) -> str:
    """A name as a step of a path: the key of a map, or the name of a field."""
    return name if name in schema.get("properties", ()) else Key(name)


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
