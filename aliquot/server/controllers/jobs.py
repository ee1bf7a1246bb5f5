"""Jobs: pods are created until enough have succeeded, or too many have failed."""

from collections.abc import Iterator
from datetime import UTC, datetime

from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker
from aliquot.server.controllers.pods import active, from_template
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import phase, ready

_JOBS = "jobs.batch"
_INDEX = "batch.kubernetes.io/job-completion-index"
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
            for uid in change.entry.owners:
                place = self._owners.locate(uid)
                if place is not None and place[0] == _JOBS:
                    self.worker.enqueue(place[1])

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_JOBS, *key)
        if found is None:
            return None
        body = found.read()
        before = body.get("status") or {}
        if _finished(before):
            return await delete_after_ttl(self._api, self._kind, body, _ended_at(before))
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        succeeded, failed = self._count(found.uid, before, pods)
        there = [pod for pod in pods if active(pod)]
        refused = None
        if not found.deleting:
            verdict = _verdict(body, len(succeeded), len(failed))
            wanted = 0 if verdict else _wanted(body, len(succeeded))
            await self._pod_maker.delete(there, len(there) - wanted)
            missing = self._pods(body, wanted - len(there), there, succeeded)
            refused = await self._pod_maker.create(body, missing)
        else:
            verdict = ""
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        there = [pod for pod in pods if active(pod)]
        await self._write_status(key, body, there, (len(succeeded), len(failed)), verdict)
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
                index = (pod["metadata"].get("annotations") or {}).get(_INDEX, "")
                known[phase(pod)][pod["metadata"]["uid"]] = index
        if new:
            for word, key in (("Succeeded", "succeeded"), ("Failed", "failed")):
                for number in range(before.get(key, 0) - len(known[word])):
                    known[word][f"before-{number}"] = ""
        return known["Succeeded"], known["Failed"]

    def _pods(
        self, body: Body, count: int, there: list[Body], succeeded: dict[str, str]
    ) -> Iterator[Body]:
        """The missing pods; those of an Indexed Job with their index."""
        indexes = _free_indexes(body, there, succeeded)
        for _ in range(min(count, CREATED_AT_ONCE)):
            pod = from_template(body, body["spec"]["template"])
            if body["spec"].get("completionMode") == "Indexed":
                index = str(next(indexes, 0))
                about = pod["metadata"]
                about["annotations"] = {**about.get("annotations", {}), _INDEX: index}
                about["labels"] = {**about.get("labels", {}), _INDEX: index}
                about["generateName"] = f"{body['metadata']['name']}-{index}-"
            yield pod

    async def _write_status(
        self, key: Key, body: Body, there: list[Body], ended: tuple[int, int], verdict: str
    ) -> None:
        before = body.get("status") or {}
        status: Body = {}
        if there:
            status["active"] = len(there)
        status["ready"] = sum(ready(pod) for pod in there)
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
    about, after = body["metadata"], body["spec"].get("ttlSecondsAfterFinished")
    if after is None or "deletionTimestamp" in about:
        return None
    left: float = after - (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    if left > 0:
        return left
    options = DeleteOptions(
        propagation_policy="Foreground", preconditions=Preconditions(uid=about["uid"])
    )
    await api.delete(kind, about["namespace"], about["name"], options)
    return None


def _finished(status: Body) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in status.get("conditions") or ()
    )


def _ended_at(status: Body) -> str:
    ends = [each for each in status["conditions"] if each["type"] in ("Complete", "Failed")]
    return max(str(each["lastTransitionTime"]) for each in ends)


def _verdict(body: Body, succeeded: int, failed: int) -> str:
    """`Complete`, `Failed`, or empty while the Job goes on."""
    spec = body["spec"]
    completions = spec.get("completions")
    if completions is not None and succeeded >= completions:
        return "Complete"
    if completions is None and succeeded:
        return "Complete"
    return "Failed" if failed > spec.get("backoffLimit", _BACKOFF) else ""


def _wanted(body: Body, succeeded: int) -> int:
    """How many pods should be active now."""
    spec = body["spec"]
    if spec.get("suspend"):
        return 0
    at_once = spec.get("parallelism", 1)
    completions = spec.get("completions")
    return int(at_once if completions is None else max(min(at_once, completions - succeeded), 0))


def _free_indexes(body: Body, there: list[Body], succeeded: dict[str, str]) -> Iterator[int]:
    taken = {(pod["metadata"].get("annotations") or {}).get(_INDEX) for pod in there}
    taken |= set(succeeded.values())
    return iter(
        [each for each in range(body["spec"].get("completions") or 0) if str(each) not in taken]
    )


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
