"""Jobs of Volcano: for each task so many pods, by name, until all have ended.

What is there is all that counts: a name without a pod gets one, whether the last one was deleted or
evicted; a pod that has failed stays, and is not tried again. Policies, plugins, volumes and the
order of tasks are not acted on, nor is `minSuccess`. Pods are made at once, without waiting for
their group to be let in: it is the scheduler that holds them back.
"""

from collections import Counter
from http import HTTPStatus

from aliquot.dialects.core.documents import Body
from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano import status as volcano_status
from aliquot.dialects.volcano.job_pods import in_job, templates
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.errors import InputError, RefusalError
from aliquot.server.api import Api
from aliquot.server.controllers.jobs import expire
from aliquot.server.controllers.pod_groups import manifest_of
from aliquot.server.controllers.pod_maker import AFTER_REFUSAL, AT_ONCE, PodMaker
from aliquot.server.controllers.pods import from_template
from aliquot.server.controllers.worker import Worker
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import Owned
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import phase

_JOBS = f"jobs.{VOLCANO_JOBS}"
_SCHEDULER = "volcano"
_FINISHED = ("Completed", "Failed")


class VolcanoJobs:
    """Looks at Jobs of Volcano, by key."""

    def __init__(self, api: Api, owned: Owned, flock: PodMaker) -> None:
        self._api, self._owned, self._flock = api, owned, flock
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for entry in api.store.all(_JOBS):
            self.worker.add(entry.key)

    def _note(self, change: Change) -> None:
        if change.storage == _JOBS:
            self.worker.add(change.entry.key)
        elif change.storage == "pods":
            for uid in change.entry.owners:
                place = self._owned.place(uid)
                if place is not None and place[0] == _JOBS:
                    self.worker.add(place[1])

    async def _look(self, key: Key) -> float | None:
        found = self._api.store.get(_JOBS, *key)
        kind = self._api.registry.named(f"{VOLCANO_JOBS}/v1alpha1", "Job")
        if found is None or found.deleting or kind is None:
            return None
        body = found.read()
        state = (body.get("status") or {}).get("state") or {}
        if state.get("phase") in _FINISHED:
            since = state.get("lastTransitionTime") or body["metadata"]["creationTimestamp"]
            return await expire(self._api, kind, body, since)
        try:
            manifest = manifest_of(body)
            jobs.fewest(manifest)
            wanted = _wanted(manifest)
        except InputError as error:
            problem = RefusalError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f"{error.field}: {error.problem}"
            )
            await self._tell(kind, body, {}, "Pending", problem)
            return None
        refused = await self._balance(manifest, wanted)
        pods = [pod for pod in self._pods(body) if pod["metadata"]["name"] in wanted]
        there = Counter(phase(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"])
        status = volcano_status.job(manifest, there)["status"]
        await self._tell(kind, body, status, status["state"]["phase"], refused)
        return AFTER_REFUSAL if refused is not None else None

    async def _balance(self, manifest: Manifest, wanted: dict[str, str]) -> RefusalError | None:
        """Make the pods that are missing, delete those that are not wanted; what was refused."""
        body = manifest.body
        there = {pod["metadata"]["name"]: pod for pod in self._pods(body)}
        surplus = [
            pod
            for name, pod in there.items()
            if name not in wanted and "deletionTimestamp" not in pod["metadata"]
        ]
        await self._flock.drop(surplus, len(surplus))
        missing = [name for name in wanted if name not in there][:AT_ONCE]
        of_task = templates(manifest)
        pods = [_pod(manifest, of_task[wanted[name]], wanted[name], name) for name in missing]
        return await self._flock.make(body, pods)

    def _pods(self, body: Body) -> list[Body]:
        return [entry.read() for _, entry in self._owned.of(body["metadata"]["uid"], "pods")]

    async def _tell(
        self, kind: Kind, body: Body, figures: Body, word: str, refused: RefusalError | None
    ) -> None:
        """Write how it stands into its status, and what is in its way."""
        before, about = body.get("status") or {}, body["metadata"]
        old = before.get("state") or {}
        since = old.get("lastTransitionTime") if old.get("phase") == word else None
        state: Body = {"phase": word, "lastTransitionTime": since or timestamp()}
        if refused is not None:
            state |= {"reason": "FailedCreate", "message": refused.message}
        status = {**before, **figures, "state": state}

        def edit(present: Body) -> Body:
            if present["metadata"]["uid"] == about["uid"]:
                present["status"] = status
            return present

        if status != before:
            await self._api.change(kind, about["namespace"], about["name"], edit, "status")


def _wanted(manifest: Manifest) -> dict[str, str]:
    """The names of its pods, as Volcano has them, and the task of each."""
    return {
        f"{manifest.name}-{task.name}-{index}": task.name
        for task in jobs.tasks(manifest)
        for index in range(task.replicas)
    }


def _pod(manifest: Manifest, template: Body, task: str, name: str) -> Body:
    pod = from_template(manifest.body, template)
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = name
    said = manifest.body["spec"].get("schedulerName") or _SCHEDULER
    pod["spec"]["schedulerName"] = pod["spec"].get("schedulerName") or said
    return in_job(pod, manifest, task, group_name(manifest) or "")
