"""Filling in fields: the two moves that defaults are made of.

They change what they are given, which is always a copy; what has a type that it must not have is
left as it is, for the checks to say so.
"""

from typing import Any

from aliquot.dialects.core.documents import Body


def part(holder: Body, name: str) -> Body:
    """The object in a field, made if it is not there; a stray one if the field holds no object."""
    found = holder.setdefault(name, {})
    return found if isinstance(found, dict) else {}


def set_missing(holder: Body, **defaults: Any) -> None:
    """Give every field that is absent, or empty text, its value."""
    for name, value in defaults.items():
        if holder.get(name, "") == "":
            holder[name] = value
