"""Schedules of CronJobs: what they name, what is refused, and when a Job was last due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.dialects import cron_jobs
from aliquot.dialects.core.cron import ScheduleError, parse

_MINUTE = timedelta(minutes=1)


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/5 * * * *", "2024-05-01 12:00", "2024-05-01 12:05"),
        ("0 * * * *", "2024-05-01 12:00:30", "2024-05-01 13:00"),
        ("30 9 * * mon-fri", "2024-05-03 10:00", "2024-05-06 09:30"),
        ("0 0 1 jan ?", "2024-05-01 12:00", "2025-01-01 00:00"),
        ("0 0 29 2 *", "2024-03-01 00:00", "2028-02-29 00:00"),
        ("0 0 13 * 5", "2024-05-04 00:00", "2024-05-10 00:00"),
        ("0 0 13 * 5", "2024-05-10 00:00", "2024-05-13 00:00"),
        ("5/20 8 * * *", "2024-05-01 08:05", "2024-05-01 08:25"),
        ("1,3,5-7 * * * *", "2024-05-01 08:03", "2024-05-01 08:05"),
        ("@hourly", "2024-05-01 08:05", "2024-05-01 09:00"),
        ("@weekly", "2024-05-01 08:05", "2024-05-05 00:00"),
        ("@monthly", "2024-12-05 08:05", "2025-01-01 00:00"),
        ("@every 90m", "2024-05-01 08:05", "2024-05-01 09:35"),
    ],
)
def test_the_next_time(schedule: str, after: str, expected: str) -> None:
    assert parse(schedule).next(_at(after)) == _at(expected)


def test_a_date_that_never_comes() -> None:
    assert parse("0 0 30 2 *").next(_at("2024-05-01 00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("", "expected exactly 5 fields, found 0"),
        ("* * * *", "found 4"),
        ("60 * * * *", "end of range (60) above maximum (59)"),
        ("* * 0 * *", "beginning of range (0) below minimum (1)"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3)"),
        ("*/0 * * * *", "step of range should be a positive number"),
        ("x * * * *", "failed to parse int from x"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every soon", "failed to parse duration"),
    ],
)
def test_what_is_refused(schedule: str, problem: str) -> None:
    with pytest.raises(ScheduleError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        parse(schedule)


_FIELDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


@st.composite
def _field(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, 15))
    forms = ["*", f"*/{step}", str(first), f"{first}-{last}", f"{first}-{last}/{step}"]
    return draw(st.sampled_from(forms))


_SCHEDULES = st.tuples(*(_field(*bounds) for bounds in _FIELDS)).map(" ".join)
_MOMENTS = st.integers(0, 40 * 365 * 24 * 60).map(
    lambda minutes: datetime(1990, 1, 1, tzinfo=UTC) + minutes * _MINUTE
)


@given(_SCHEDULES, _MOMENTS)
def test_no_time_is_passed_over(schedule: str, after: datetime) -> None:
    """The next time matches every field, and no minute before it does."""
    found = parse(schedule).next(after)
    end = after + 3 * 24 * 60 * _MINUTE if found is None else min(found, after + 4320 * _MINUTE)
    at = after + _MINUTE
    while at < end:
        assert not _matches(schedule, at)
        at += _MINUTE
    assert found is None or (found > after and _matches(schedule, found))


def _matches(schedule: str, at: datetime) -> bool:
    values = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
    fields = schedule.split()
    minute, hour, day, month, weekday = (
        _in(field, value, bounds)
        for field, value, bounds in zip(fields, values, _FIELDS, strict=True)
    )
    either = fields[2][0] != "*" and fields[4][0] != "*"
    return minute and hour and month and (day or weekday if either else day and weekday)


def _in(field: str, value: int, bounds: tuple[int, int]) -> bool:
    span, _, step = field.partition("/")
    first, dash, last = span.partition("-")
    low = bounds[0] if first == "*" else int(first)
    high = bounds[1] if first == "*" else int(last) if dash else low
    return low <= value <= high and (value - low) % int(step or 1) == 0


def _cron(schedule: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": "c"}, "spec": {"schedule": schedule, **spec}}


def test_the_last_time_that_was_due() -> None:
    since, now = _at("2024-05-01 00:00"), _at("2024-05-01 12:34:56")
    every = _cron("*/5 * * * *")
    assert cron_jobs.last_time(every, since, now) == _at("2024-05-01 12:30")
    assert cron_jobs.last_time(every, _at("2024-05-01 12:30"), now) is None
    year = _at("2020-01-01 00:00")
    assert cron_jobs.last_time(_cron("0 0 1 1 *"), year, now) == _at("2024-01-01 00:00")
    late = _cron("0 * * * *", startingDeadlineSeconds=600)
    assert cron_jobs.last_time(late, since, now) is None


def test_a_time_zone() -> None:
    noon = _cron("0 12 * * *", timeZone="Asia/Tokyo")
    assert cron_jobs.next_time(noon, _at("2024-05-01 00:00")) == _at("2024-05-01 03:00")
    assert cron_jobs.next_time(_cron("0 12 * * *", timeZone="No/Where"), _at("2024-05-01")) is None
