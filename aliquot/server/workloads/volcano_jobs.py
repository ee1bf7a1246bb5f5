"""Jobs of Volcano: each task has its replicas as pods, by name, until all have ended.

A pod that is missing is created, whether the last one of its name was deleted or evicted; a pod
that has failed stays, and is not retried. Policies, plugins, volumes, the order of tasks and
`minSuccess` are ignored. Pods are created at once, without waiting for their PodGroup to be
admitted: the scheduler makes them wait.
"""

from collections import Counter
from http import HTTPStatus

from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano import status as volcano_status
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.dialects.workloads import task_pod, task_pods
from aliquot.errors import InputError, RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import phase
from aliquot.server.workloads.jobs import delete_after_ttl
from aliquot.server.workloads.pod_groups import manifest_of
from aliquot.server.workloads.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker

_JOBS = f"jobs.{VOLCANO_JOBS}"
_FINISHED = ("Completed", "Failed")


class VolcanoJobs:
    """Reconciles Jobs of Volcano, by key."""

    def __init__(self, api: Api, owners: OwnerIndex, pod_maker: PodMaker) -> None:
        self._api, self._owners, self._pod_maker = api, owners, pod_maker
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_JOBS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _JOBS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == "pods":
            for owner in self._owners.owners_in(_JOBS, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_JOBS, *key)
        kind = self._api.registry.named(f"{VOLCANO_JOBS}/v1alpha1", "Job")
        if found is None or found.deleting or kind is None:
            return None
        body = found.read()
        state = (body.get("status") or {}).get("state") or {}
        if state.get("phase") in _FINISHED:
            since = state.get("lastTransitionTime") or body["metadata"]["creationTimestamp"]
            return await delete_after_ttl(self._api, kind, body, since)
        try:
            manifest = manifest_of(body)
            jobs.min_available(manifest)
            wanted = task_pods(manifest)
        except InputError as error:
            problem = RefusalError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f"{error.field}: {error.problem}"
            )
            await self._write_status(kind, body, {}, "Pending", problem)
            return None
        refused = await self._balance(manifest, wanted)
        pods = [pod for pod in self._pods(body) if pod["metadata"]["name"] in wanted]
        phases = Counter(phase(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"])
        status = volcano_status.job(manifest, phases)["status"]
        await self._write_status(kind, body, status, status["state"]["phase"], refused)
        return RETRY_SECONDS if refused is not None else None

    async def _balance(self, manifest: Manifest, wanted: dict[str, str]) -> RefusalError | None:
        """Create missing pods, delete surplus ones; the first refusal, if there is one."""
        body = manifest.body
        present = {pod["metadata"]["name"]: pod for pod in self._pods(body)}
        surplus = [
            pod
            for name, pod in present.items()
            if name not in wanted and "deletionTimestamp" not in pod["metadata"]
        ]
        await self._pod_maker.delete(surplus, len(surplus))
        missing = [name for name in wanted if name not in present][:CREATED_AT_ONCE]
        group = group_name(manifest) or ""
        pods = [task_pod(manifest, wanted[name], group, name=name) for name in missing]
        return await self._pod_maker.create(body, pods)

    def _pods(self, body: Body) -> list[Body]:
        return [
            entry.read() for _, entry in self._owners.dependents(body["metadata"]["uid"], "pods")
        ]

    async def _write_status(
        self, kind: Kind, body: Body, figures: Body, job_phase: str, refused: RefusalError | None
    ) -> None:
        """Write the status if it changed: counts, phase, and why pods were refused."""
        before, metadata = body.get("status") or {}, body["metadata"]
        old = before.get("state") or {}
        since = old.get("lastTransitionTime") if old.get("phase") == job_phase else None
        state: Body = {"phase": job_phase, "lastTransitionTime": since or timestamp()}
        if refused is not None:
            state |= {"reason": "FailedCreate", "message": refused.message}
        status = {**before, **figures, "state": state}

        def edit(present: Body) -> Body:
            if present["metadata"]["uid"] == metadata["uid"]:
                present["status"] = status
            return present

        if status != before:
            await self._api.change(kind, metadata["namespace"], metadata["name"], edit, "status")
