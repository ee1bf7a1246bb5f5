"""The smallest merge patch that makes one object of another."""

from typing import Any


def difference(old: Any, new: Any) -> Any:
    """What must be patched into `old`; an empty map if it is `new` already."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = difference(old[key], value)
    return patch
