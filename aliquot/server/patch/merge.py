"""Merge patches (RFC 7386) and JSON patches (RFC 6902), as pure functions.

Arguments are never changed, and results share nothing with them. The caller validates the patched
object: nothing here knows of kinds. Strategic merge patches, which do, are in `strategic`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aliquot.errors import PatchError, PatchMisfitError
from aliquot.json import Body, fresh, same
from aliquot.server.patch.strategic import strategic_merge_patch

__all__ = ["json_patch", "merge_patch", "strategic_merge_patch"]

_MOST_OPERATIONS = 10_000
"""Of one JSON patch; the limit of kube-apiserver."""
_ABSENT = object()


def merge_patch(body: Body, patch: Any) -> Body:
    """RFC 7386: fields of the patch are set, null removes one, lists are replaced."""
    if not isinstance(patch, dict):
        raise PatchError(f"a merge patch must be an object, not {_shown(patch)}")
    merged = _merged(body, patch)
    assert isinstance(merged, dict)
    return merged


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return fresh(patch)
    kept = value if isinstance(value, dict) else {}
    merged = {
        key: _merged(each, patch[key]) if key in patch else fresh(each)
        for key, each in kept.items()
        if key not in patch or patch[key] is not None
    }
    added = {key: each for key, each in patch.items() if key not in kept and each is not None}
    return merged | {key: _merged(None, each) for key, each in added.items()}


def json_patch(body: Body, operations: Any) -> Body:
    """RFC 6902: one operation after the other, all or none."""
    if not isinstance(operations, list):
        raise PatchError(f"a JSON patch must be a list of operations, not {_shown(operations)}")
    if len(operations) > _MOST_OPERATIONS:
        allowed = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}"
        raise PatchError(f"{allowed}, got {len(operations)}")
    steps = [_step(each) for each in operations]
    patched = fresh(body)
    for step in steps:
        patched = step(patched)
    if not isinstance(patched, dict):
        raise PatchMisfitError(f"the patch leaves {_shown(patched)} instead of an object")
    return patched


Step = Callable[[Any], Any]
Pointer = tuple[str, ...]


def _step(operation: Any) -> Step:
    """The function of one operation; refused if it is invalid."""
    if not isinstance(operation, dict):
        raise PatchError(f"an operation must be an object, not {_shown(operation)}")
    word, path = operation.get("op"), _pointer(operation, "path")
    match word:
        case "add":
            return _add(path, _value(operation))
        case "replace":
            return _replace(path, _value(operation))
        case "test":
            return _test(path, _value(operation))
        case "remove":
            return lambda whole: _remove(whole, path)
        case "move":
            return _move(_pointer(operation, "from"), path)
        case "copy":
            origin = _pointer(operation, "from")
            return lambda whole: _insert(whole, path, fresh(_get(whole, origin)))
    raise PatchError(f"Unexpected kind: {word}" if word else "an operation has no op")


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(f"the operation {operation['op']} {operation['path']!r} has no value")
    return operation["value"]


def _pointer(operation: Mapping[str, Any], word: str) -> Pointer:
    """A JSON pointer, RFC 6901: empty for the whole object, else `/a/b~1c/0`."""
    text = operation.get(word)
    if not isinstance(text, str):
        raise PatchError(f"the operation {operation.get('op')} has no {word}")
    if text and not text.startswith("/"):
        raise PatchError(f"{word} {text!r} does not begin with /")
    parts = text.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _add(path: Pointer, value: Any) -> Step:
    return lambda whole: _insert(whole, path, fresh(value))


def _replace(path: Pointer, value: Any) -> Step:
    def replace(whole: Any) -> Any:
        if not path:
            return fresh(value)
        holder = _get(whole, path[:-1])
        key = _key(holder, path)
        _entry(holder, key, path)
        holder[key] = fresh(value)
        return whole

    return replace


def _test(path: Pointer, value: Any) -> Step:
    """`test`; a missing field equals null, as in kube-apiserver."""

    def test(whole: Any) -> Any:
        try:
            found = _get(whole, path)
        except PatchMisfitError:
            found = None
            if value is not None:
                raise
        if not same(found, value):
            raise PatchMisfitError(f"testing path {_text(path)} failed: it is {_shown(found)}")
        return whole

    return test


def _move(origin: Pointer, path: Pointer) -> Step:
    if path[: len(origin)] == origin and path != origin:
        raise PatchError(f"{_text(origin)} cannot move into itself, to {_text(path)}")

    def move(whole: Any) -> Any:
        value = _get(whole, origin)
        return _insert(_remove(whole, origin), path, value)

    return move


def _insert(whole: Any, path: Pointer, value: Any) -> Any:
    if not path:
        return value
    holder = _get(whole, path[:-1])
    if isinstance(holder, list):
        holder.insert(len(holder) if path[-1] == "-" else _index(path, len(holder)), value)
    else:
        holder[_key(holder, path)] = value
    return whole


def _remove(whole: Any, path: Pointer) -> Any:
    if not path:
        return None
    holder = _get(whole, path[:-1])
    key = _key(holder, path)
    _entry(holder, key, path)
    del holder[key]
    return whole


def _get(whole: Any, path: Pointer) -> Any:
    found = whole
    for end in range(1, len(path) + 1):
        found = _entry(found, _key(found, path[:end]), path[:end])
    return found


def _key(holder: Any, path: Pointer) -> Any:
    """The last part of a path as a key of an object or an index of a list."""
    if isinstance(holder, dict):
        return path[-1]
    if isinstance(holder, list):
        return _index(path, len(holder) - 1)
    raise PatchMisfitError(
        f"{_text(path)}: {_text(path[:-1])} is {_shown(holder)}, and holds nothing"
    )


def _entry(holder: Any, key: Any, path: Pointer) -> Any:
    found = holder.get(key, _ABSENT) if isinstance(holder, dict) else holder[key]
    if found is _ABSENT:
        raise PatchMisfitError(f"{_text(path)} is not there")
    return found


def _index(path: Pointer, last: int) -> int:
    part = path[-1]
    if not part.isascii() or not part.isdigit() or (part.startswith("0") and part != "0"):
        raise PatchMisfitError(f"{_text(path)}: {part!r} is not an index of a list")
    if len(part) > 9 or int(part) > last:
        raise PatchMisfitError(f"{_text(path)}: the list has {last + 1} places")
    return int(part)


def _text(path: Sequence[str]) -> str:
    parts = (part.replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts) or "the whole object"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    return "null" if value is None else repr(value)[:60]
