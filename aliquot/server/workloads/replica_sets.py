"""ReplicaSets and ReplicationControllers: missing pods are created, surplus pods deleted."""

from aliquot.dialects.workloads import new_pod, replicas
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.conditions import with_transition
from aliquot.server.controllers.pods import active
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import ready
from aliquot.server.workloads.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker


class ReplicaSets:
    """Reconciles ReplicaSets, or the older kind that is like them, by key."""

    def __init__(
        self, api: Api, owners: OwnerIndex, pod_maker: PodMaker, kind: str = "ReplicaSet"
    ) -> None:
        self._api, self._owners, self._pod_maker = api, owners, pod_maker
        self.worker = Worker(self._reconcile)
        self._kind = api.kind(kind)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(self._kind.storage):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == self._kind.storage:
            self.worker.enqueue(change.entry.key)
        elif change.storage == "pods":
            for owner in self._owners.owners_in(self._kind.storage, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(self._kind.storage, *key)
        if found is None:
            return None
        body = found.read()
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        active_pods = [pod for pod in pods if active(pod)]
        refused: RefusalError | None = None
        if not found.deleting:
            missing, prefix = replicas(body) - len(active_pods), f"{found.name}-"
            pod = new_pod(body, body["spec"]["template"], generateName=prefix)
            refused = await self._pod_maker.create(body, [pod] * min(missing, CREATED_AT_ONCE))
            await self._pod_maker.delete(active_pods, -missing)
        pods = [entry.read() for _, entry in self._owners.dependents(found.uid, "pods")]
        await self._write_status(key, body, [pod for pod in pods if active(pod)], refused)
        return RETRY_SECONDS if refused is not None else None

    async def _write_status(
        self, key: Key, body: Body, active_pods: list[Body], refused: RefusalError | None
    ) -> None:
        """Count the pods, and write the status if it changed."""
        ready_pods = sum(ready(pod) for pod in active_pods)
        status: Body = {"replicas": len(active_pods)}
        if active_pods:
            status["fullyLabeledReplicas"] = len(active_pods)
        if ready_pods:
            status |= {"readyReplicas": ready_pods, "availableReplicas": ready_pods}
        status["observedGeneration"] = body["metadata"]["generation"]
        if refused is not None:
            status["conditions"] = [_failure(refused, (body.get("status") or {}))]

        def edit(present: Body) -> Body:
            present["status"] = status
            return present

        if status != body.get("status"):
            await self._api.change(self._kind, *key, edit, "status")


def _failure(refused: RefusalError, before: Body) -> Body:
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": refused.message,
    }
    return with_transition(condition, before)
