"""Labels, annotations and selectors: maps of text, in which YAML likes to find other things."""

from collections.abc import Mapping
from typing import Any

from aliquot.dialects.core.manifest import Manifest


def text_map(values: Mapping[str, Any] | None, manifest: Manifest, field: str) -> dict[str, str]:
    """The map as text; an unquoted_keys `true` or number is read as it was written."""
    found = {}
    for key, value in (values or {}).items():
        if isinstance(value, dict | list):
            raise manifest.error(f"{field}[{key}]", "must be text")
        found[key] = to_text(value)
    return found


def to_text(value: object) -> str:
    """A plain YAML value as its author wrote it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def unquoted_keys(values: Mapping[str, Any] | None) -> list[str]:
    """The keys whose values an API server would refuse, for not being text."""
    return [key for key, value in (values or {}).items() if not isinstance(value, str)]
