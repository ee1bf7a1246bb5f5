"""What an object is in JSON: its type, and how such values are copied, compared and read.

Light on purpose: a module that handles objects which are already decoded needs neither the YAML
parser (`dialects.core.documents`) nor the structs (`dialects.core.objects`). Python takes `True`
for 1 and shares nested values between copies; the functions here do neither.
"""

from typing import Any

Body = dict[str, Any]
"""An object as it stands in JSON."""
DEEPEST = 100
"""The most levels of nesting of what is read: Kubernetes' deepest objects have some twenty, and
functions that follow them stay far below Python's limit of recursion."""


def too_deep(value: Any) -> bool:
    """Has a value more than `DEEPEST` levels? Found level by level, without recursion."""
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
    return depth > DEEPEST


def fresh(value: Any) -> Any:
    """A deep copy: no dict or list of it is shared with the original."""
    if isinstance(value, dict):
        return {key: fresh(each) for key, each in value.items()}
    return [fresh(each) for each in value] if isinstance(value, list) else value


def without_nulls(value: Any) -> Any:
    """A copy of a value without the fields that are null."""
    if isinstance(value, dict):
        kept = value.items()
        return {key: without_nulls(each) for key, each in kept if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    """Are two values equal in JSON, where `true` is not 1?"""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def type_name(value: Any) -> str:
    """What JSON Schema calls the type of a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    names = {dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names[type(value)]


def seek(value: Any, *words: str) -> Any:
    """The value at a path of keys; None where a key is missing or a value is no object."""
    for word in words:
        value = value.get(word) if isinstance(value, dict) else None
    return value


def go_text(value: Any) -> str:
    """A value as Go prints it, and so as kube-apiserver's messages have it: `map[a:[b <nil>]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool) or value is None:
        return "<nil>" if value is None else str(value).lower()
    return str(value)
