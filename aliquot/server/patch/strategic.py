"""Strategic merge patches: merge patches that merge the lists of a kind.

The schemas of the kinds (`core_schemas`) say how: a list with a merge key is merged item by item, a
list of plain values with the strategy merge is a set, any other list is replaced. Directives in the
patch, fields that begin with `$`, delete, replace or order items.
"""

from collections.abc import Callable
from typing import Any

from aliquot.dialects.core.schema import Schema
from aliquot.errors import PatchError, UnsupportedPatchError
from aliquot.json import Body, fresh, same
from aliquot.server.rules.causes import quoted
from aliquot.server.schema.core_schemas import schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge_patch(body: Body, patch: Any, kind: str) -> Body:
    """The patched object; custom kinds have no strategic merge patch."""
    shape = schema(kind)
    if shape is None:
        raise UnsupportedPatchError(f"{kind} has no strategic merge patch")
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch must be an object")
    return _object(fresh(body), fresh(patch), shape)


def _object(old: Body, patch: Body, shape: Schema) -> Body:
    """Merge an object field by field; both arguments are copies and may be changed."""
    word = patch.pop(_PATCH, None)
    if word is not None:
        return _apply_directive(word, patch)
    kept = _retained(old, patch)
    for key, values in _directives(patch, _DELETE).items():
        if isinstance(kept.get(key), list):
            kept[key] = [each for each in kept[key] if not _among(each, values)]
    orders = _directives(patch, _ORDER)
    for key, value in patch.items():
        _field(kept, key, value, _inner(shape, key), orders.pop(key, None))
    for key, order in orders.items():
        if isinstance(kept.get(key), list):
            kept[key] = _ordered(kept[key], order, kept[key], _inner(shape, key))
    return kept


def _field(kept: Body, key: str, value: Any, shape: Schema, order: list[Any] | None) -> None:
    old = kept.get(key)
    if value is None:
        kept.pop(key, None)
    elif isinstance(value, dict):
        merges = isinstance(old, dict) and "replace" not in _strategy(shape)
        kept[key] = _object(old or {}, value, shape) if merges else _object({}, value, {})
    elif isinstance(value, list) and "merge" in _strategy(shape):
        now = old if isinstance(old, list) else []
        merged = _list(now, value, shape)
        kept[key] = _ordered(merged, value if order is None else order, now, shape)
    else:
        kept[key] = _plain(value)


def _list(old: list[Any], patch: list[Any], shape: Schema) -> list[Any]:
    """Merge two lists: by key, or as a set."""
    key = shape.get("x-kubernetes-patch-merge-key")
    if key is None:
        return [*old, *(each for each in patch if not _among(each, old))]
    merged, given = list(old), []
    for each in patch:
        word = _item(each, key).get(_PATCH)
        if word is None:
            given.append(each)
        elif word == "delete":
            merged = [one for one in merged if not _is(one, key, _key_of(each, key))]
        elif word != "replace":
            raise PatchError(f"unknown patch type: {word}")
    if any(each.get(_PATCH) == "replace" for each in patch):
        merged = []
    for each in given:
        _merge_item(merged, each, key, shape.get("items", {}))
    return merged


def _merge_item(merged: list[Any], each: Body, key: str, shape: Schema) -> None:
    value = _key_of(each, key)
    for index, one in enumerate(merged):
        if _is(one, key, value):
            merged[index] = _object(one, each, shape)
            return
    merged.append(_object({}, each, {}))


def _ordered(merged: list[Any], order: list[Any], before: list[Any], shape: Schema) -> list[Any]:
    """Items of the patch in its order; the others keep their place among them."""
    key = shape.get("x-kubernetes-patch-merge-key")
    identity: Callable[[Any], Any] = (lambda item: item) if key is None else _identity(key)
    places = [identity(each) for each in before]
    named = [identity(each) for each in order]
    named_items = sorted(
        (each for each in merged if _among(identity(each), named)),
        key=lambda each: _place(identity(each), named),
    )
    other_items = [each for each in merged if not _among(identity(each), named)]
    result = []
    for each in named_items:
        place = _place(identity(each), places)
        while (
            place < len(places) and other_items and _place(identity(other_items[0]), places) < place
        ):
            result.append(other_items.pop(0))
        result.append(each)
    return [*result, *other_items]


def _identity(key: str) -> Callable[[Any], Any]:
    return lambda item: item.get(key) if isinstance(item, dict) else None


def _place(value: Any, among: list[Any]) -> int:
    return next((at for at, each in enumerate(among) if same(each, value)), len(among))


def _among(value: Any, values: list[Any]) -> bool:
    return any(same(value, each) for each in values)


def _apply_directive(word: Any, patch: Body) -> Body:
    """`$patch`: replace or delete the object."""
    if word == "replace":
        plain = _plain(patch)
        assert isinstance(plain, dict)
        return plain
    if word == "delete":
        return {}
    raise PatchError(f"unknown patch type: {word}")


def _retained(old: Body, patch: Body) -> Body:
    """`$retainKeys`: the object with only these fields."""
    keys = patch.pop(_RETAIN, None)
    if keys is None:
        return old
    given = [key for key, value in patch.items() if value is not None and not key.startswith("$")]
    if not isinstance(keys, list) or any(key not in keys for key in given):
        raise PatchError("invalid patch format of retainKeys: it must name every field given")
    return {key: value for key, value in old.items() if key in keys}


def _directives(patch: Body, prefix: str) -> dict[str, list[Any]]:
    """Remove the directives with this prefix from a patch; their values by field."""
    found = {}
    for key in [key for key in patch if key.startswith(prefix)]:
        values = patch.pop(key)
        if not isinstance(values, list):
            raise PatchError(f"{key} must be a list")
        found[key.removeprefix(prefix)] = values
    return found


def _plain(value: Any) -> Any:
    """A new value without nulls and directives."""
    if isinstance(value, list):
        kept = (each for each in value if not (isinstance(each, dict) and _PATCH in each))
        return [_plain(each) for each in kept]
    if isinstance(value, dict):
        items = value.items()
        return {key: _plain(each) for key, each in items if each is not None and key[:1] != "$"}
    return value


def _item(each: Any, key: str) -> Body:
    if not isinstance(each, dict):
        raise PatchError(f"an item of a list that is merged by {key} must be an object")
    return each


def _key_of(each: Body, key: str) -> Any:
    if each.get(key) is None:
        raise PatchError(f"map: {quoted(each)} does not contain declared merge key: {key}")
    return each[key]


def _is(one: Any, key: str, value: Any) -> bool:
    return isinstance(one, dict) and same(one.get(key), value)


def _inner(shape: Schema, key: str) -> Schema:
    properties: dict[str, Schema] = shape.get("properties", {})
    more = shape.get("additionalProperties")
    return properties.get(key) or (more if isinstance(more, dict) else {})


def _strategy(shape: Schema) -> list[str]:
    found: str = shape.get("x-kubernetes-patch-strategy", "")
    return found.split(",")
