"""The values of an applied configuration put into an object, and fields taken out of one.

Lists that are split keep the order of the configuration for the items that it has; the other items
keep their place among them.
"""

from collections import deque
from typing import Any

from aliquot.json import Body, fresh
from aliquot.server.ownership.field_set import FieldSet, inner, is_member, item_element
from aliquot.server.schema.structure import ABSENT, ANY, Structure


def merge(structure: Structure, live: Body, config: Body) -> Body:
    """The object with the values of the configuration; shares nothing with either."""
    return _records(structure, live, config)


def _records(structure: Structure, live: Body, config: Body) -> Body:
    merged = {name: fresh(each) for name, each in live.items() if name not in config}
    for name, value in config.items():
        merged[name] = _values(structure.of(name) or ANY, live.get(name), value)
    ordered = {name: merged[name] for name in live}
    return ordered | merged


def _values(structure: Structure, live: Any, value: Any) -> Any:
    if value is None and structure.sort in ("record", "list") and live:
        return fresh(live)
    if not structure.splits(value):
        return fresh(value)
    if isinstance(value, dict):
        return _records(structure, live if isinstance(live, dict) else {}, value)
    return _lists(structure, live if isinstance(live, list) else [], value)


def _lists(structure: Structure, live: list[Any], config: list[Any]) -> list[Any]:
    """Both lists merged: shared items come in the order of the configuration."""
    held = [item_element(structure, each) for each in live]
    given = {item_element(structure, each): each for each in config}
    order = list(given)
    old = _unique(held, live)
    shared = deque(element for element in order if element in old)
    placed: set[str | None] = set()
    merged: list[Any] = []
    at = next_given = 0
    while at < len(held) or next_given < len(order):
        if at < len(held):
            element = held[at]
            if element not in given:
                merged.append(fresh(live[at]))
                at += 1
                continue
            elsewhere = bool(shared) and shared[0] != element
            if element in placed or (elsewhere and next_given < len(order)):
                at += 1
                continue
        element = order[next_given]
        next_given += 1
        placed.add(element)
        merged.append(_values(structure.items or ANY, old.get(element), given[element]))
        if shared and shared[0] == element:
            shared.popleft()
    return merged


def _unique(elements: list[str | None], values: list[Any]) -> dict[str | None, Any]:
    """The items by their elements; those that occur twice have no value to merge with."""
    found: dict[str | None, Any] = {}
    for element, value in zip(elements, values, strict=True):
        found[element] = None if element in found else value
    return found


def remove(structure: Structure, value: Any, fields: FieldSet) -> Any:
    """The value without the members of a set; null where only its parts were taken."""
    if not value or not isinstance(value, dict | list):
        return value if not isinstance(value, dict | list) else None
    if not structure.splits(value):
        return None
    if isinstance(value, list):
        kept = [_item(structure, each, fields) for each in value]
        return [each for each in kept if each is not None] or None
    left: Body = {}
    for name, each in value.items():
        element = f"f:{name}"
        if element not in fields:
            left[name] = each
        elif not is_member(fields[element]):
            left[name] = remove(structure.of(name) or ANY, each, inner(fields, element))
    return left or None


def compacted(structure: Structure, value: Any, zeros: bool = True) -> Any:
    """The value without the fields that Kubernetes leaves out when they are empty.

    Without `zeros`, also without the empty fields that it writes.
    """
    if isinstance(value, list):
        return [compacted(structure.items or ANY, each, zeros) for each in value]
    if not isinstance(value, dict):
        return value
    kept: Body = {}
    for name, each in value.items():
        field = structure.fields.get(name)
        if field is None:
            kept[name] = compacted(structure.items or ANY, each, zeros)
            continue
        read = field.read(compacted(field.structure, each, zeros))
        if read is not ABSENT and (zeros or read != field.zero):
            kept[name] = read
    return kept


def _item(structure: Structure, item: Any, fields: FieldSet) -> Any:
    element = item_element(structure, item)
    if element is None or element not in fields:
        return item
    if is_member(fields[element]):
        return None
    return remove(structure.items or ANY, item, inner(fields, element))
