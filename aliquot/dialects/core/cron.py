"""Schedules of CronJobs: five fields, or `@hourly` and the like, and the next time they name.

The syntax is that of Kubernetes: `*`, lists, ranges, steps and names of months and weekdays. If
both day of month and day of week are restricted, one of them is enough.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES: tuple[dict[str, int], ...] = (
    *({}, {}, {}),
    {name: number for number, name in enumerate(_MONTHS, 1)},
    {name: number for number, name in enumerate(_DAYS)},
)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_YEARS = 5
"""Years to search: 29 February comes again within eight, but Kubernetes gives up after five."""
_MINUTE = timedelta(minutes=1)


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes, hours, days, months and weekdays at which a CronJob runs."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Is day of month or day of week `*`? Then both must match, else one of them."""
    every: int = 0
    """Seconds between two runs, of a schedule such as `@every 1h`; 0 for all others."""

    def next(self, after: datetime) -> datetime | None:
        """The first time after this one; None if there is none within five years."""
        if self.every:
            return after.replace(microsecond=0) + timedelta(seconds=self.every)
        at = after.replace(second=0, microsecond=0) + _MINUTE
        last = after.year + _YEARS
        while at.year <= last:
            if at.month not in self.months:
                at = _next_month(at)
            elif not self._on_day(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in self.hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in self.minutes:
                at += _MINUTE
            else:
                return at
        return None

    def _on_day(self, at: datetime) -> bool:
        by_month, by_week = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return by_month and by_week if self.any_day else by_month or by_week


def parse(text: str) -> Schedule:
    """Read a schedule."""
    if text.startswith("@every "):
        found = _DURATION.fullmatch(text.removeprefix("@every ").strip())
        parts = [int(each or 0) for each in found.groups()] if found else [0]
        seconds = sum(count * unit for count, unit in zip(parts, (3600, 60, 1), strict=False))
        if not seconds:
            raise ScheduleError(f"failed to parse duration {text}: a time such as 1h30m is needed")
        nothing = frozenset[int]()
        return Schedule(nothing, nothing, nothing, nothing, nothing, False, seconds)
    if text.startswith("@") and text not in _SHORTHANDS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = _SHORTHANDS.get(text, text).split()
    if len(fields) != len(_BOUNDS):
        listed = " ".join(fields)
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{listed}]")
    minutes, hours, days, months, weekdays = (
        _field(field, index) for index, field in enumerate(fields)
    )
    any_day = any(fields[index][0] in "*?" for index in (2, 4))
    return Schedule(minutes, hours, days, months, weekdays, any_day)


def _field(text: str, index: int) -> frozenset[int]:
    return frozenset(number for part in text.split(",") for number in _range(part, index))


def _range(text: str, index: int) -> range:
    low, high = _BOUNDS[index]
    span, slash, step = text.partition("/")
    first, dash, last = span.partition("-")
    if first in ("*", "?") and not dash:
        begin, end = low, high
    else:
        begin = _number(first, index)
        end = _number(last, index) if dash else (high if slash else begin)
    if begin < low:
        raise ScheduleError(f"beginning of range ({begin}) below minimum ({low}): {text}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {text}")
    if begin > end:
        raise ScheduleError(f"beginning of range ({begin}) beyond end of range ({end}): {text}")
    width = _plain(step) if slash else 1
    if not width:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(begin, end + 1, width)


def _number(text: str, index: int) -> int:
    return _NAMES[index].get(text.lower(), -1) if text.lower() in _NAMES[index] else _plain(text)


def _plain(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise ScheduleError(f"failed to parse int from {text[:50]}")
    return int(text)


def _next_month(at: datetime) -> datetime:
    year, month = (at.year + 1, 1) if at.month == 12 else (at.year, at.month + 1)
    return at.replace(year=year, month=month, day=1, hour=0, minute=0)
