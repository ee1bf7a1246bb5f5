"""Sets of fields in the form in which objects carry them: `fieldsV1`, a tree of path elements.

`f:name` is a field, `k:{"name":"a"}` an item of a list by its keys, `v:"a"` an item of a set.
A node without entries, or with the entry `.`, is a member of the set; any other node only leads to
members. The empty tree is the empty set. No function changes its arguments; results may share
nodes with them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aliquot.server.schema.structure import Structure

FieldSet = dict[str, Any]
_encode = msgspec.json.Encoder().encode
_SELF = "."


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of either set."""
    merged = dict(one)
    for element, node in other.items():
        held = merged.get(element)
        merged[element] = node if held is None else _joined(held, node)
    return merged


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    if one == other:
        return one
    member = is_member(one) or is_member(other)
    inner = union(_inner(one), _inner(other))
    return {_SELF: {}, **inner} if member and inner else inner


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of the first set that the second does not have."""
    kept: FieldSet = {}
    for element, node in one.items():
        if element not in other:
            kept[element] = node
            continue
        taken = other[element]
        member = is_member(node) and not is_member(taken)
        _put(kept, element, member, difference(_inner(node), _inner(taken)))
    return kept


def without_parts(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of the first set that neither are members of the second nor lie below one."""
    kept: FieldSet = {}
    for element, node in one.items():
        if element not in other:
            kept[element] = node
        elif not is_member(other[element]):
            inner = without_parts(_inner(node), other[element])
            _put(kept, element, is_member(node), inner)
    return kept


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of both sets."""
    kept: FieldSet = {}
    for element, node in one.items():
        if element in other:
            held = other[element]
            member = is_member(node) and is_member(held)
            _put(kept, element, member, intersection(_inner(node), _inner(held)))
    return kept


def covers(one: FieldSet, other: FieldSet) -> bool:
    """Does the first set have all paths of the second?"""
    for element, node in other.items():
        if element == _SELF:
            continue
        held = one.get(element)
        if held is None or (is_member(node) and not is_member(held)) or not covers(held, node):
            return False
    return True


def meet(one: FieldSet, other: FieldSet) -> bool:
    """Have two sets a path in common?"""
    for element, node in other.items():
        held = one.get(element) if element != _SELF else None
        if held is not None and ((is_member(node) and is_member(held)) or meet(held, node)):
            return True
    return False


def with_named_fields(fields: FieldSet, structure: Structure | None) -> FieldSet:
    """The set with every declared field that leads to a member."""
    filled: FieldSet = {}
    for element, node in fields.items():
        inner_structure, declared = None, False
        if structure is not None and element.startswith("f:"):
            declared = element[2:] in structure.fields
            inner_structure = structure.of(element[2:])
        elif structure is not None:
            inner_structure = structure.items
        inner = with_named_fields(_inner(node), inner_structure)
        _put(filled, element, is_member(node) or declared, inner)
    return filled


def within(fields: FieldSet, structure: Structure | None) -> FieldSet:
    """The set in a structure that is newer than it: what is atomic now has no parts."""
    if structure is None:
        return fields
    kept: FieldSet = {}
    for element, node in fields.items():
        part = structure.of(element[2:]) if element.startswith("f:") else structure.items
        if element == _SELF or part is None or part.sort == "any" or not node:
            kept[element] = node
        elif part.atomic:
            kept[element] = {}
        else:
            kept[element] = within(node, part)
    return kept


def is_member(node: FieldSet) -> bool:
    """Is the path of this node itself in the set?"""
    return not node or _SELF in node


def inner(fields: FieldSet, element: str) -> FieldSet:
    """The set of what lies below an element."""
    return _inner(fields.get(element, {}))


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The paths of a set, level by level, as messages write them: `.spec.containers[name="a"]`."""
    ordered = sorted(fields, key=_order)
    yield from (prefix + written(each) for each in ordered if is_member(fields[each]))
    for element in ordered:
        yield from paths(_inner(fields[element]), prefix + written(element))


def _order(element: str) -> tuple[int, str]:
    return ("fvki".find(element[0]), element)


def written(element: str) -> str:
    """An element as messages write it."""
    kind, _, value = element.partition(":")
    if kind == "f":
        return f".{value}"
    if kind == "v":
        return f"[={value}]"
    if kind == "k":
        keys = json.loads(value)
        return "[" + ",".join(f"{key}={_text(keys[key])}" for key in sorted(keys)) + "]"
    return f"[{value}]"


def item_element(structure: Structure, item: Any) -> str | None:
    """The element of an item of a list that is split; None if nothing identifies it."""
    if not structure.keys:
        return None if isinstance(item, dict | list) or item is None else f"v:{_text(item)}"
    if not isinstance(item, dict):
        return None
    keys = {}
    for key in structure.keys:
        value = item.get(key)
        if value is None:
            value = structure.key_defaults.get(key)
        if value is not None:
            keys[key] = value
    if len(keys) > 1:
        keys = dict(sorted(keys.items()))
    return f"k:{_text(keys)}" if keys else None


def _text(value: Any) -> str:
    return _encode(value).decode()


def _inner(node: Mapping[str, Any]) -> FieldSet:
    return {element: each for element, each in node.items() if element != _SELF}


def _put(fields: FieldSet, element: str, member: bool, inner_fields: FieldSet) -> None:
    if member:
        fields[element] = {_SELF: {}, **inner_fields} if inner_fields else {}
    elif inner_fields:
        fields[element] = inner_fields
