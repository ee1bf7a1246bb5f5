"""CronJobs: when the next Job is due, what it is, and whether it may start beside others.

The rules are those of kube-controller-manager. The simulation asks in virtual time, the embedded
API server in real time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aliquot.dialects.core import cron
from aliquot.dialects.core.labels import SCHEDULED
from aliquot.dialects.core.manifest import Manifest, owner_reference
from aliquot.json import Body

CONCURRENCY = ("Allow", "Forbid", "Replace")
"""What may happen to a Job that is due while another one of its CronJob runs."""
SUCCESSES, FAILURES = 3, 1
"""The defaults of successfulJobsHistoryLimit and failedJobsHistoryLimit in Kubernetes."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_THOUSAND = 1000
"""Nanoseconds in a microsecond, the smallest unit of a date."""
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=31))
"""The last due time is searched for in these windows first, so that a long pause costs little."""


def check(manifest: Manifest) -> None:
    """Refuse a schedule or a time zone that cannot be read."""
    body = manifest.body
    if _zone(body) is None:
        raise manifest.error("spec.timeZone", f"there is no time zone {body['spec']['timeZone']}")
    try:
        cron.parse(str(body["spec"].get("schedule") or ""))
    except cron.ScheduleError as error:
        raise manifest.error("spec.schedule", str(error)) from None
    if concurrency(body) not in CONCURRENCY:
        problem = f"{concurrency(body)!r} is none of {', '.join(CONCURRENCY)}"
        raise manifest.error("spec.concurrencyPolicy", problem)


def suspended(owner: Body) -> bool:
    """Does a CronJob start no Jobs for now?"""
    return bool(owner["spec"].get("suspend"))


def concurrency(owner: Body) -> str:
    """What happens to a Job that is due while another runs."""
    return str(owner["spec"].get("concurrencyPolicy") or "Allow")


def next_time(owner: Body, after: datetime) -> datetime | None:
    """When the next Job is due after this time; None if never, or its schedule is unreadable."""
    zone = _zone(owner)
    try:
        schedule = cron.parse(str(owner["spec"].get("schedule") or ""))
    except cron.ScheduleError:
        return None
    found = schedule.next(after.astimezone(zone)) if zone is not None else None
    return found.astimezone(UTC) if found is not None else None


def next_virtual_time(owner: Body, after: int) -> int | None:
    """The same in virtual time, in nanoseconds; it begins with the year 1970, in UTC."""
    found = next_time(owner, virtual_time(after))
    return None if found is None else (found - _BEGIN) // timedelta(microseconds=1) * _THOUSAND


def virtual_time(nanos: int) -> datetime:
    """A moment of virtual time as a date."""
    return _BEGIN + timedelta(microseconds=nanos // _THOUSAND)


def last_time(owner: Body, since: datetime, now: datetime) -> datetime | None:
    """The last time at which a Job was due after `since` and until now; None if there was none.

    Times that are older than startingDeadlineSeconds are missed for good.
    """
    deadline = owner["spec"].get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    windows = (now - each for each in _WINDOWS if now - each > since)
    for begin in (*windows, since):
        found = list(_times(owner, begin, now))
        if found:
            return found[-1]
    return None


def job(owner: Body, name: str, at: datetime) -> Body:
    """The Job of a CronJob that is due at this time."""
    template = owner["spec"]["jobTemplate"]
    written = template.get("metadata") or {}
    annotations = {
        **(written.get("annotations") or {}),
        SCHEDULED: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    metadata = {
        "name": name,
        "namespace": owner["metadata"].get("namespace") or "default",
        "labels": dict(written.get("labels") or {}),
        "annotations": annotations,
        "ownerReferences": [owner_reference(owner)],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": template.get("spec") or {},
    }


def job_name(owner: Body, at: datetime) -> str:
    """The name of a Job that is due at this time: it ends with the minutes since 1970."""
    return f"{owner['metadata']['name']}-{int(at.timestamp()) // 60}"


def _times(owner: Body, after: datetime, until: datetime) -> Iterator[datetime]:
    at = next_time(owner, after)
    while at is not None and at <= until:
        yield at
        at = next_time(owner, at)


def _zone(owner: Body) -> ZoneInfo | None:
    """The time zone of a CronJob, UTC by default; None if there is none of its name."""
    try:
        return ZoneInfo(owner["spec"].get("timeZone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
