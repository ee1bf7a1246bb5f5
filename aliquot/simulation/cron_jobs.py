"""The CronJobs of a simulation: Jobs are made when they are due, in virtual time.

Virtual time begins at midnight UTC on a Thursday (1 January 1970). A schedule never ends: so in a
simulation that ends when nothing more can happen, each CronJob makes one Job only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from aliquot.dialects import cron_jobs
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, Manifest, read
from aliquot.dialects.core.simulation_annotations import DURATION, GRACE
from aliquot.mirror.store import Change


@dataclass(slots=True)
class _CronJob:
    """A CronJob: when its next Job is due, and the Jobs that it has made."""

    manifest: Manifest
    due: int | None
    jobs: list[Key] = field(default_factory=list)
    active: list[Key] = field(default_factory=list)
    """Those that were not complete when the last one was due; one that is stays so."""
    waits: bool = False
    """Is a Job due that may not run beside another one?"""


class CronJobs:
    """All CronJobs, by key."""

    def __init__(self, is_active: Callable[[Key], bool]) -> None:
        self.once = False
        """Makes each CronJob only one Job?"""
        self._is_active = is_active
        self._known: dict[Key, _CronJob] = {}

    def apply(self, manifest: Manifest, now: int) -> None:
        """A CronJob is new, or has changed."""
        known = self._known.get(manifest.key)
        due = _next(manifest, now)
        made = _CronJob(manifest, due)
        if known is not None:
            made.jobs, made.active = known.jobs, known.active
        self._known[manifest.key] = made

    def drop(self, key: Key) -> list[Key]:
        """A CronJob is deleted; returns the Jobs that go with it."""
        known = self._known.pop(key, None)
        return known.jobs if known is not None else []

    def next(self) -> int | None:
        """When the next Job is due; None if none is."""
        moments = (each.due for each in self._known.values() if self._goes_on(each))
        return min((moment for moment in moments if moment is not None), default=None)

    def changes(self, now: int) -> Iterator[Change]:
        """What CronJobs delete and make now."""
        for each in self._known.values():
            if each.due is not None and each.due <= now and self._goes_on(each):
                each.due, each.waits = _next(each.manifest, now), True
            if each.waits:
                yield from self._start(each, now)

    def _goes_on(self, each: _CronJob) -> bool:
        return not self.once or not each.jobs

    def _start(self, each: _CronJob, now: int) -> Iterator[Change]:
        manifest, policy = each.manifest, cron_jobs.concurrency(each.manifest.body)
        each.active = [key for key in each.active if self._is_active(key)]
        if each.active and policy == "Forbid":
            return
        each.waits = False
        if each.active and policy == "Replace":
            yield Change(now, delete=tuple((key, manifest.place) for key in each.active))
        job = _job(manifest, f"{manifest.name}-{len(each.jobs)}", now)
        each.jobs.append(job.key)
        each.active.append(job.key)
        yield Change(now, apply=(job,))


def _next(manifest: Manifest, now: int) -> int | None:
    if cron_jobs.suspended(manifest.body):
        return None
    return cron_jobs.next_virtual_time(manifest.body, now)


def _job(manifest: Manifest, name: str, now: int) -> Manifest:
    """The Job that is due now, with the annotations of a simulation that its CronJob has."""
    body = cron_jobs.job(manifest.body, name, cron_jobs.virtual_time(now))
    body["metadata"]["namespace"] = manifest.namespace
    own = manifest.metadata.annotations or {}
    kept = {key: own[key] for key in (DURATION, GRACE) if key in own}
    body["metadata"]["annotations"] = {**kept, **body["metadata"]["annotations"]}
    made = read(Document(manifest.place, body))
    assert made is not None
    return made
