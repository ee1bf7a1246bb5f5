"""Two states of an object, compared: which fields were changed or added, and which removed.

Kubernetes' own kinds are compared as Kubernetes writes them: some empty fields count as given, and
others as not given (`structure.Field`). The comparison skips equal parts at once, so that an update
costs what it changes, not what the object holds.
"""

from typing import Any

from aliquot.json import Body
from aliquot.server.ownership.field_set import FieldSet, item_element
from aliquot.server.schema.structure import ABSENT, ANY, Structure

_SELF = "."


def compare(
    structure: Structure, old: Body, new: Body, literal: bool = False
) -> tuple[FieldSet, FieldSet]:
    """The fields that the new object changes or adds, and those that it lacks.

    `literal`: the new object holds an applied configuration, whose empty fields count as given.
    """
    changed: FieldSet = {}
    removed: FieldSet = {}
    _records(structure, old, new, changed, removed, literal)
    return changed, removed


def _records(
    structure: Structure,
    old: Body,
    new: Body,
    changed: FieldSet,
    removed: FieldSet,
    literal: bool,
) -> None:
    fields, stripped = structure.fields, structure.stripped
    for name, value in new.items():
        before = old.get(name, ABSENT)
        if before == value or name in stripped:
            continue
        field = fields.get(name)
        if field is None:
            items = structure.items or ANY
            _values(items, before, value, f"f:{name}", changed, removed, literal)
            continue
        before = field.read(before)
        value = value if literal else field.read(value)
        if before is not value:
            _values(field.structure, before, value, f"f:{name}", changed, removed, literal)
    for name, before in old.items():
        if name in new or name in stripped:
            continue
        field = fields.get(name)
        if field is None:
            items = structure.items or ANY
            _values(items, before, ABSENT, f"f:{name}", changed, removed, literal)
            continue
        before = field.read(before)
        if before is not field.zero:
            _values(field.structure, before, field.zero, f"f:{name}", changed, removed, literal)


def _values(
    structure: Structure,
    old: Any,
    new: Any,
    element: str,
    changed: FieldSet,
    removed: FieldSet,
    literal: bool,
) -> None:
    """Compare two values of which one may be absent."""
    if new is ABSENT:
        removed[element] = all_fields(structure, old)
    elif old is ABSENT:
        changed[element] = all_fields(structure, new, literal)
    elif not (structure.splits(old) or structure.splits(new)) or not (old or new):
        if old != new:
            changed[element] = {}
    else:
        _parts(structure, old, new, element, changed, removed, literal)


def _parts(
    structure: Structure,
    old: Any,
    new: Any,
    element: str,
    changed: FieldSet,
    removed: FieldSet,
    literal: bool,
) -> None:
    inner_changed: FieldSet = {}
    inner_removed: FieldSet = {}
    if isinstance(old, list) or isinstance(new, list):
        lists = [each if isinstance(each, list) else [] for each in (old, new)]
        _lists(structure, lists[0], lists[1], inner_changed, inner_removed, literal)
    else:
        records = [each if isinstance(each, dict) else {} for each in (old, new)]
        _records(structure, records[0], records[1], inner_changed, inner_removed, literal)
    if structure.sort == "any" and not _both_records(old, new):
        changed[element] = {_SELF: {}, **inner_changed} if inner_changed else {}
    elif inner_changed:
        changed[element] = inner_changed
    if inner_removed:
        removed[element] = inner_removed


def _both_records(one: Any, other: Any) -> bool:
    """Are both values records? Null counts as an empty one."""
    return isinstance(one, dict | None) and isinstance(other, dict | None)


def _lists(
    structure: Structure,
    old: list[Any],
    new: list[Any],
    changed: FieldSet,
    removed: FieldSet,
    literal: bool,
) -> None:
    """Compare two lists item by item; items with the same keys are compared as one value."""
    before, after = _indexed(structure, old), _indexed(structure, new)
    items = structure.items or ANY
    for element in dict.fromkeys((*before, *after)):
        were, are = before.get(element, []), after.get(element, [])
        if were == are:
            continue
        if len(were) > 1 and len(are) > 1:
            changed[element] = {}
        elif len(were) > 1:
            removed[element] = {}
            if are:
                changed[element] = all_fields(items, are[0], literal)
        elif len(are) > 1:
            changed[element] = {}
            if were:
                removed[element] = all_fields(items, were[0])
        else:
            one, other = (were or [ABSENT])[0], (are or [ABSENT])[0]
            _values(items, one, other, element, changed, removed, literal)


def _indexed(structure: Structure, values: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in values:
        element = item_element(structure, each)
        if element is not None:
            found.setdefault(element, []).append(each)
    return found


def all_fields(structure: Structure, value: Any, literal: bool = False) -> FieldSet:
    """The node of a value that was not there before: all its parts, and itself."""
    if not structure.splits(value):
        return {}
    node: FieldSet = {_SELF: {}}
    if isinstance(value, list):
        for element, same_keys in _indexed(structure, value).items():
            one = same_keys[0] if len(same_keys) == 1 else None
            node[element] = all_fields(structure.items or ANY, one, literal)
        return node if len(node) > 1 else {}
    fields = structure.fields
    for name, each in value.items():
        field = fields.get(name)
        if field is None:
            node[f"f:{name}"] = all_fields(structure.items or ANY, each, literal)
        elif (read := each if literal else field.read(each)) is not ABSENT:
            node[f"f:{name}"] = all_fields(field.structure, read, literal)
    for name in () if literal else structure.always:
        if name not in value:
            node[f"f:{name}"] = all_fields(fields[name].structure, fields[name].zero)
    return node if len(node) > 1 else {}


def owned_fields(structure: Structure, config: Body) -> FieldSet:
    """The fields that an applied configuration claims."""
    found: FieldSet = {}
    for name, value in config.items():
        if name in structure.stripped:
            continue
        node = _claimed(structure.of(name) or ANY, value)
        if name not in structure.fields and node is not None and node:
            node = {_SELF: {}, **node}
        elif name not in structure.fields or value is None or value == {}:
            node = node or {}
        if node is not None:
            found[f"f:{name}"] = node
    return found


def _claimed(structure: Structure, value: Any) -> FieldSet | None:
    """The node of a value that is claimed; None if nothing of it is."""
    if not structure.splits(value):
        return None if value is None and structure.sort in ("record", "list") else {}
    if isinstance(value, dict):
        return owned_fields(structure, value) or None
    node: FieldSet = {}
    for element, same_keys in _indexed(structure, value).items():
        one = _claimed(structure.items or ANY, same_keys[0]) if len(same_keys) == 1 else {}
        node[element] = {_SELF: {}, **one} if one else {}
    return node or None
