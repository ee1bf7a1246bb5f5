"""Unknown fields of Kubernetes' own kinds: those that their protobuf messages do not have."""

from functools import cache
from typing import Any

from aliquot.json import Body
from aliquot.server.kinds.kind import Kind
from aliquot.server.schema.protobuf import Field, messages, root

_OPEN = frozenset({"managedFields"})

Steps = tuple[str | int, ...]
"""The path to a field: names, which may be any text, and indexes of lists."""


def unknown_fields(kind: Kind, body: Body) -> list[Steps]:
    """The paths of fields that a kind does not have; none if the kind is not in the table."""
    name = root(kind.api_version, kind.name)
    found: list[Steps] = []
    if name is not None:
        _walk(name, body, (), found)
    return [each for each in found if each not in (("apiVersion",), ("kind",))]


def path(steps: Steps) -> str:
    """A path as text: `spec.containers[0].image`."""
    words = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(words).removeprefix(".")


def without(body: Body, paths: list[Steps]) -> Body:
    """The object without these fields."""
    for *above, last in paths:
        holder: Any = body
        for step in above:
            holder = holder[step]
        holder.pop(last, None)
    return body


def _walk(name: str, value: Any, steps: Steps, found: list[Steps]) -> None:
    if not isinstance(value, dict):
        return
    fields = _fields(name)
    for key, each in value.items():
        where = (*steps, key)
        if key not in fields:
            found.append(where)
            continue
        kind, how = fields[key]
        if kind not in messages() or key in _OPEN:
            continue
        if how == "repeated" and isinstance(each, list):
            for index, one in enumerate(each):
                _walk(kind, one, (*where, index), found)
        elif how not in ("map", "repeated"):
            _walk(kind, each, where, found)


@cache
def _fields(name: str) -> dict[str, tuple[str, str]]:
    """The fields of a message by their name in JSON, with those of inlined messages."""
    fields: dict[str, tuple[str, str]] = {}
    for field in messages()[name].values():
        fields.update(_named(field))
    return fields


def _named(field: Field) -> dict[str, tuple[str, str]]:
    name, kind, how = field
    return _fields(kind) if how == "inline" else {name: (kind, how)}
