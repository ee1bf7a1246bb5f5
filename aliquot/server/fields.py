"""The fields of Kubernetes' own kinds, all of them: what an object says beyond them is unknown.

The table of protobuf messages has their names already.
"""

from functools import cache
from typing import Any

from aliquot.dialects.documents import Body
from aliquot.server.kind import Kind
from aliquot.server.protobuf import Field, messages, root

_OPEN = frozenset({"managedFields"})


def strays(kind: Kind, body: Body) -> list[str]:
    """The paths of fields that a kind does not have; none where its fields are not known."""
    name = root(kind.api_version, kind.name)
    found: list[str] = []
    if name is not None:
        _walk(name, body, "", found)
    return [each for each in found if each not in ("apiVersion", "kind")]


def without(body: Body, paths: list[str]) -> Body:
    """The object without these fields."""
    for path in paths:
        *above, last = path.replace("[", ".[").split(".")
        holder: Any = body
        for step in above:
            holder = holder[int(step[1:-1]) if step.startswith("[") else step]
        holder.pop(last, None)
    return body


def _walk(name: str, value: Any, path: str, found: list[str]) -> None:
    if not isinstance(value, dict):
        return
    fields = _fields(name)
    for key, each in value.items():
        where = f"{path}.{key}" if path else key
        if key not in fields:
            found.append(where)
            continue
        kind, how = fields[key]
        if kind not in messages() or key in _OPEN:
            continue
        if how == "repeated" and isinstance(each, list):
            for index, one in enumerate(each):
                _walk(kind, one, f"{where}[{index}]", found)
        elif how not in ("map", "repeated"):
            _walk(kind, each, where, found)


@cache
def _fields(name: str) -> dict[str, tuple[str, str]]:
    """The fields of a message by their name in JSON, those of its inlined parts among them."""
    fields: dict[str, tuple[str, str]] = {}
    for field in messages()[name].values():
        fields.update(_named(field))
    return fields


def _named(field: Field) -> dict[str, tuple[str, str]]:
    name, kind, how = field
    return _fields(kind) if how == "inline" else {name: (kind, how)}
