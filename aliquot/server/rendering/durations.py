"""Ages and durations as kubectl writes them: the longer, the coarser."""

from datetime import datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Below so many seconds: a unit and its letter, and a finer unit beside it; as in kubectl."""


def human(seconds: int) -> str:
    """`45s`, `5m10s`, `2h`, `3d4h`, `120d`: the longer, the coarser."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    for most, unit, sign, finer, finer_sign in _STEPS:
        if seconds < most:
            rest = seconds % unit // finer if finer else 0
            return f"{seconds // unit}{sign}{f'{rest}{finer_sign}' if rest else ''}"
    return f"{seconds // _YEAR}y"


def since(then: object, now: datetime) -> str:
    """The age of a timestamp."""
    if not then:
        return "<unknown>"
    moment = read(then)
    return "<invalid>" if moment is None else human(int((now - moment).total_seconds()))


def read(text: object) -> datetime | None:
    """A timestamp of an object; None if it is invalid."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
