"""Durations and timestamps as Kubernetes writes them, in whole nanoseconds."""

import re
from datetime import UTC, datetime, timedelta

from aliquot.errors import InputError

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ns|us|µs|ms|s|m|h|d)")
_MOST_CHARACTERS = 60
"""Longer than any duration in use, and short enough that no number in it is costly to parse."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 100 * 365 * _UNITS["d"]
"""A hundred years: longer than any pod runs, and in nanoseconds within int64."""


def duration(value: object, place: str, field: str) -> int:
    """`90s`, `1h30m`, `1.5h`, `2d`; a plain number is seconds."""
    nanos = _nanos(value)
    if nanos is None:
        shown = repr(value)[:40]
        raise InputError(place, field, f"{shown} is not a duration, such as 30s, 10m or 1h30m")
    if nanos > _LONGEST:
        raise InputError(place, field, f"{value!r} is longer than a hundred years")
    return nanos


def _nanos(value: object) -> int | None:
    if type(value) is int and 0 <= value <= _LONGEST:  # as a pod's grace period is stated
        return value * _UNITS["s"]
    text = str(value).strip()
    if isinstance(value, bool) or not text or len(text) > _MOST_CHARACTERS:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        text += "s"
    total, end = 0, 0
    for match in _PART.finditer(text):
        if match.start() != end:
            return None
        whole, part, unit = match.groups()
        total += int(whole) * _UNITS[unit]
        if part:
            total += int(part) * _UNITS[unit] // 10 ** len(part)
        end = match.end()
    return total if end == len(text) else None


def timestamp(value: str | None, place: str, field: str) -> int | None:
    """An RFC 3339 time such as `2024-05-01T12:00:00Z`."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InputError(
            place, field, f"{value!r} is not a time such as 2024-05-01T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InputError(place, field, f"{value!r} has no time zone, such as Z")
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000


def moment(nanos: int) -> str:
    """A time as objects have it, such as `1970-01-01T00:10:00Z`: virtual time begins in 1970."""
    return (_EPOCH + timedelta(seconds=nanos // 10**9)).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(nanos: int) -> str:
    """A span of time in the largest unit that divides it: `10d`, `36h`, `90s`."""
    units = (("d", 86_400), ("h", 3600), ("m", 60))
    whole = nanos // 10**9
    found = ((name, size) for name, size in units if whole and whole % size == 0)
    name, size = next(found, ("s", 1))
    return f"{whole // size}{name}"


def seconds(nanos: int) -> int | float:
    """Nanoseconds as seconds: an int where they are whole."""
    return nanos // 10**9 if nanos % 10**9 == 0 else nanos / 10**9
