"""CronJobs: a Job whenever the schedule says so; finished Jobs go when the history is full."""

from datetime import UTC, datetime
from http import HTTPStatus

from aliquot.dialects import cron_jobs
from aliquot.errors import RefusalError
from aliquot.json import Body, fresh
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change

_CRON_JOBS, _JOBS = "cronjobs.batch", "jobs.batch"
_ENDS = {"Complete": "successfulJobsHistoryLimit", "Failed": "failedJobsHistoryLimit"}
_LIMITS = {"Complete": cron_jobs.SUCCESSES, "Failed": cron_jobs.FAILURES}


class CronJobs:
    """Reconciles CronJobs, by key: when they change, when their Jobs do, and when they are due."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self.worker = Worker(self._reconcile)
        self._kind, self._job = api.kind("CronJob"), api.kind("Job")
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_CRON_JOBS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _CRON_JOBS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == _JOBS:
            for owner in self._owners.owners_in(_CRON_JOBS, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_CRON_JOBS, *key)
        if found is None or found.deleting:
            return None
        body, now = found.read(), datetime.now(UTC)
        status = dict(body.get("status") or {})
        await self._delete_old(body)
        due = None if cron_jobs.suspended(body) else self._due(body, now)
        if due is not None:
            await self._start(body, due, status)
        self._count(body, status)
        await self._write_status(key, body, status)
        if cron_jobs.suspended(body):
            return None
        coming = cron_jobs.next_time(body, now)
        return None if coming is None else max((coming - datetime.now(UTC)).total_seconds(), 0.01)

    def _due(self, body: Body, now: datetime) -> datetime | None:
        """The time for which a Job has to start now; None if none has."""
        since = (body.get("status") or {}).get("lastScheduleTime")
        return cron_jobs.last_time(body, _time(since or body["metadata"]["creationTimestamp"]), now)

    async def _start(self, body: Body, due: datetime, status: Body) -> None:
        """Start the Job of this time, as the concurrency policy allows."""
        running = self._active(body, status)
        policy = cron_jobs.concurrency(body)
        if running and policy == "Forbid":
            return
        for job in running if policy == "Replace" else ():
            await self._delete(job)
        made = cron_jobs.job(fresh(body), cron_jobs.job_name(body, due), due)
        try:
            entry = await self._api.create(self._job, body["metadata"]["namespace"], made)
            status["active"] = [*(status.get("active") or ()), _reference(entry.read())]
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.CONFLICT:
                raise
        status["lastScheduleTime"] = due.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _active(self, body: Body, status: Body) -> list[Body]:
        """The Jobs of its schedule that run; those that users made of its template do not count."""
        known = {each.get("uid") for each in status.get("active") or ()}
        jobs = [job for job in self._jobs(body) if job["metadata"]["uid"] in known]
        return [job for job in sorted(jobs, key=_begun) if not _ended(job)]

    def _jobs(self, body: Body) -> list[Body]:
        found = self._owners.dependents(body["metadata"]["uid"], _JOBS)
        jobs = (entry.read() for _, entry in found)
        return [each for each in jobs if "deletionTimestamp" not in each["metadata"]]

    async def _delete_old(self, body: Body) -> None:
        """Delete finished Jobs beyond the history limits, oldest first."""
        jobs = self._jobs(body)
        for end, limit in _ENDS.items():
            ended = sorted((job for job in jobs if _ended(job) == end), key=_begun)
            kept = body["spec"].get(limit, _LIMITS[end])
            for job in ended[: max(len(ended) - kept, 0)]:
                await self._delete(job)

    async def _delete(self, job: Body) -> None:
        metadata = job["metadata"]
        options = DeleteOptions(
            propagation_policy="Background", preconditions=Preconditions(uid=metadata["uid"])
        )
        try:
            await self._api.delete(self._job, metadata["namespace"], metadata["name"], options)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    def _count(self, body: Body, status: Body) -> None:
        """Write which Jobs are active, and when the last one succeeded."""
        jobs = self._jobs(body)
        active = [_reference(job) for job in self._active(body, status)]
        status.pop("active", None)
        if active:
            status["active"] = active
        ends = [
            job["status"]["completionTime"]
            for job in jobs
            if _ended(job) == "Complete" and job["status"].get("completionTime")
        ]
        before = status.get("lastSuccessfulTime")
        if ends:
            status["lastSuccessfulTime"] = max([*ends, before] if before else ends)

    async def _write_status(self, key: Key, body: Body, status: Body) -> None:
        def edit(shown: Body) -> Body:
            shown["status"] = status
            return shown

        if status != (body.get("status") or {}):
            await self._api.change(self._kind, *key, edit, "status")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _begun(job: Body) -> tuple[str, str]:
    metadata = job["metadata"]
    return str((job.get("status") or {}).get("startTime") or ""), str(metadata["name"])


def _ended(job: Body) -> str:
    """`Complete`, `Failed`, or empty while the Job goes on."""
    for each in (job.get("status") or {}).get("conditions") or ():
        if each["type"] in _ENDS and each["status"] == "True":
            return str(each["type"])
    return ""


def _reference(job: Body) -> Body:
    metadata = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        **{word: metadata[word] for word in ("name", "namespace", "uid", "resourceVersion")},
    }
