"""Jobs: pods are created until enough have succeeded, or too many have failed."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from aliquot.dialects.workloads import (
    completion_index,
    indexes,
    job_is_complete,
    job_pod,
    job_wants,
)
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.pods import active
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import phase, ready
from aliquot.server.workloads.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker

_JOBS = "jobs.batch"
_OWN_NAME = "kubernetes.io/job-controller"
"""The value of managedBy of Jobs that are reconciled here; others are left to their controller."""
_BACKOFF = 6
"""The default of backoffLimit in Kubernetes."""


class Jobs:
    """Reconciles Jobs, by key."""

    def __init__(self, api: Api, owners: OwnerIndex, pod_maker: PodMaker) -> None:
        self._api, self._owners, self._pod_maker = api, owners, pod_maker
        self.worker = Worker(self._reconcile)
        self._kind = api.kind("Job")
        self._ended: dict[str, dict[str, dict[str, str]]] = {}
        """By uid of the Job and phase, the uids of the pods that ended, with their index."""
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_JOBS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _JOBS:
            self.worker.enqueue(change.entry.key)
            if change.type == "DELETED":
                self._ended.pop(change.entry.uid, None)
        elif change.storage == "pods":
            for owner in self._owners.owners_in(_JOBS, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_JOBS, *key)
        if found is None:
            return None
        body = found.read()
        if body["spec"].get("managedBy", _OWN_NAME) != _OWN_NAME:
            return None
        before = body.get("status") or {}
        if _finished(before):
            return await delete_after_ttl(self._api, self._kind, body, _ended_at(before))
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        succeeded, failed = self._count(found.uid, before, pods)
        active_pods = [pod for pod in pods if active(pod)]
        refused = None
        if not found.deleting:
            counts = (len(succeeded), len(active_pods))
            verdict = _verdict(body, counts, len(failed))
            wanted = 0 if verdict else job_wants(body, *counts)
            await self._pod_maker.delete(active_pods, len(active_pods) - wanted)
            missing = self._pods(body, wanted - len(active_pods), active_pods, succeeded)
            refused = await self._pod_maker.create(body, missing)
        else:
            verdict = ""
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        active_pods = [pod for pod in pods if active(pod)]
        await self._write_status(key, body, active_pods, (len(succeeded), len(failed)), verdict)
        return RETRY_SECONDS if refused is not None else None

    def _count(
        self, uid: str, before: Body, pods: list[Body]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The pods that succeeded and those that failed, deleted ones included."""
        known = self._ended.get(uid)
        new = known is None
        if known is None:
            known = self._ended[uid] = {"Succeeded": {}, "Failed": {}}
        for pod in pods:
            if phase(pod) in known:
                known[phase(pod)][pod["metadata"]["uid"]] = completion_index(pod)
        if new:
            for word, key in (("Succeeded", "succeeded"), ("Failed", "failed")):
                for number in range(before.get(key, 0) - len(known[word])):
                    known[word][f"before-{number}"] = ""
        return known["Succeeded"], known["Failed"]

    def _pods(
        self, body: Body, count: int, active_pods: list[Body], succeeded: dict[str, str]
    ) -> Iterator[Body]:
        """The missing pods; those of an Indexed Job with their index."""
        count, prefix = min(count, CREATED_AT_ONCE), f"{body['metadata']['name']}-"
        if not indexes(body):
            yield from (job_pod(body, generateName=prefix) for _ in range(count))
            return
        taken = {*map(completion_index, active_pods), *succeeded.values()}
        missing = (index for index in range(indexes(body)) if str(index) not in taken)
        for index in islice(missing, max(count, 0)):
            yield job_pod(body, index, generateName=f"{prefix}{index}-")

    async def _write_status(
        self, key: Key, body: Body, active_pods: list[Body], ended: tuple[int, int], verdict: str
    ) -> None:
        before = body.get("status") or {}
        status: Body = {}
        if active_pods:
            status["active"] = len(active_pods)
        status["ready"] = sum(ready(pod) for pod in active_pods)
        for word, count in zip(("succeeded", "failed"), ended, strict=True):
            if count:
                status[word] = count
        if not body["spec"].get("suspend"):
            status["startTime"] = before.get("startTime") or timestamp()
        if verdict:
            status["conditions"] = [*(before.get("conditions") or ()), *_conditions(verdict)]
            if verdict == "Complete":
                status["completionTime"] = timestamp()

        def edit(present: Body) -> Body:
            present["status"] = status
            return present

        if status != before:
            await self._api.change(self._kind, *key, edit, "status")


async def delete_after_ttl(api: Api, kind: Kind, body: Body, since: str) -> float | None:
    """Delete a Job that finished at `since` when its ttlSecondsAfterFinished is over.

    Returns the seconds until then; None if it is deleted or has no TTL. Jobs of Volcano, too.
    """
    metadata, after = body["metadata"], body["spec"].get("ttlSecondsAfterFinished")
    if after is None or "deletionTimestamp" in metadata:
        return None
    left: float = after - (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    if left > 0:
        return left
    options = DeleteOptions(
        propagation_policy="Foreground", preconditions=Preconditions(uid=metadata["uid"])
    )
    await api.delete(kind, metadata["namespace"], metadata["name"], options)
    return None


def _finished(status: Body) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in status.get("conditions") or ()
    )


def _ended_at(status: Body) -> str:
    ends = [each for each in status["conditions"] if each["type"] in ("Complete", "Failed")]
    return max(str(each["lastTransitionTime"]) for each in ends)


def _verdict(body: Body, counts: tuple[int, int], failed: int) -> str:
    """`Complete`, `Failed`, or empty while the Job goes on; `counts`: succeeded, active pods."""
    if job_is_complete(body, *counts):
        return "Complete"
    return "Failed" if failed > body["spec"].get("backoffLimit", _BACKOFF) else ""


def _conditions(verdict: str) -> list[Body]:
    now = timestamp()
    reason, message = {
        "Complete": ("CompletionsReached", "Reached expected number of succeeded pods"),
        "Failed": ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
    }[verdict]
    first = "SuccessCriteriaMet" if verdict == "Complete" else "FailureTarget"
    return [
        {
            "type": each,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }
        for each in (first, verdict)
    ]
