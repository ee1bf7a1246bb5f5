"""A value against a JSON Schema: the words of it that the schemas of the documentation use."""

from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_WORDS = {
    *("$schema", "title", "type", "items", "properties", "required", "additionalProperties"),
    "enum",
}


def problems(schema: dict[str, Any], value: Any, at: str = "") -> Iterator[str]:
    """What does not fit, with its place; a word of the schema that is not known is refused."""
    unknown = set(schema) - _WORDS
    assert not unknown, unknown
    types = schema.get("type", list(_TYPES))
    named = [types] if isinstance(types, str) else types
    if not any(_is(value, each) for each in named):
        yield f"{at}: {value!r} is not {named}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from problems(schema.get("items", {}), each, f"{at}[{index}]")
    if isinstance(value, dict):
        yield from _of_object(schema, value, at)


def _of_object(schema: dict[str, Any], value: dict[str, Any], at: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{at}.{key} is missing" for key in schema.get("required", ()) if key not in value)
    for key, each in value.items():
        if key in known:
            yield from problems(known[key], each, f"{at}.{key}")
        elif others is False:
            yield f"{at}.{key} is not in the schema"
        elif isinstance(others, dict):
            yield from problems(others, each, f"{at}.{key}")


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
