"""The fields of a new object as the text of `fieldsV1`: what `comparison` finds against nothing.

Creating pods is the server's hottest path. Text instead of nested dicts halves the cost: nothing
is allocated that the garbage collector must look at, and nothing is left to encode.
"""

from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import msgspec

from aliquot.json import Body
from aliquot.server.ownership.field_set import item_element
from aliquot.server.schema.structure import ABSENT, ANY, Structure

_LEAF = "{}"
_ITSELF = '".":{}'


def created(structure: Structure, body: Body, skipped: str = "") -> str:
    """The text of all fields of a new object but the skipped one; empty if none is left."""
    kept = body if not skipped else {name: body[name] for name in body if name != skipped}
    parts = _from_empty(structure, kept)
    return "{" + ",".join(parts) + "}" if parts else ""


def entry(about: Body, fields: str) -> msgspec.Raw:
    """The one entry of a new object, with the text of its fields."""
    start = msgspec.json.encode(about)[:-1].decode()
    return msgspec.Raw(f'[{start},"fieldsType":"FieldsV1","fieldsV1":{fields}}}]'.encode())


def _from_empty(structure: Structure, value: Any) -> list[str]:
    """The fields of a record, or the items of a list, whose empty form was there before."""
    if isinstance(value, list):
        return _items(structure, value)
    parts: list[str] = []
    fields, stripped = structure.fields, structure.stripped
    for name, each in value.items():
        if name in stripped:
            continue
        field = fields.get(name)
        if field is None:
            parts.append(_named(name) + _whole(structure.items or ANY, each))
            continue
        part = field.structure
        read = each if each not in field.empty else field.zero
        if read is ABSENT:
            continue
        if field.zero is ABSENT:
            parts.append(field.key + (_LEAF if part.sort == "scalar" else _whole(part, read)))
        elif not part.splits(read) or not read:
            if read != field.zero:
                parts.append(field.key + _LEAF)
        elif inner := _from_empty(part, read):
            parts.append(field.key + "{" + ",".join(inner) + "}")
    return parts


def _whole(structure: Structure, value: Any) -> str:
    """The node of a value that was not there before: all its parts, and itself."""
    if structure.sort == "scalar" or not structure.splits(value):
        return _LEAF
    parts = _items(structure, value) if isinstance(value, list) else _fields(structure, value)
    return "{" + ",".join((_ITSELF, *parts)) + "}" if parts else _LEAF


def _fields(structure: Structure, value: Body) -> list[str]:
    parts: list[str] = []
    fields = structure.fields
    if not fields:
        items = structure.items or ANY
        return [_named(name) + _whole(items, each) for name, each in value.items()]
    for name, each in value.items():
        field = fields.get(name)
        if field is None:
            parts.append(_named(name) + _whole(structure.items or ANY, each))
            continue
        read = each if each not in field.empty else field.zero
        if read is not ABSENT:
            parts.append(field.key + _whole(field.structure, read))
    for name in structure.always:
        if name not in value:
            field = fields[name]
            parts.append(field.key + _whole(field.structure, field.zero))
    return parts


def _items(structure: Structure, value: list[Any]) -> list[str]:
    found: dict[str, Any] = {}
    for each in value:
        element = item_element(structure, each)
        if element is not None:
            found[element] = None if element in found else each
    items = structure.items or ANY
    return [f"{quoted(element)}:{_whole(items, each)}" for element, each in found.items()]


def _named(name: str) -> str:
    return f'"f:{quoted(name)[1:]}:'
