"""ReplicaSets: so many pods, made when they are missing and deleted when they are too many."""

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.pod_maker import AFTER_REFUSAL, AT_ONCE, PodMaker
from aliquot.server.controllers.pods import active, from_template
from aliquot.server.controllers.worker import Worker
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import Owned
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import ready

_SETS = "replicasets.apps"


class ReplicaSets:
    """Looks at ReplicaSets, by key."""

    def __init__(self, api: Api, owned: Owned, flock: PodMaker) -> None:
        self._api, self._owned, self._flock = api, owned, flock
        self.worker = Worker(self._look)
        self._kind = api.kind("ReplicaSet")
        api.store.listeners.append(self._note)
        for entry in api.store.all(_SETS):
            self.worker.add(entry.key)

    def _note(self, change: Change) -> None:
        if change.storage == _SETS:
            self.worker.add(change.entry.key)
        elif change.storage == "pods":
            for uid in change.entry.owners:
                place = self._owned.place(uid)
                if place is not None and place[0] == _SETS:
                    self.worker.add(place[1])

    async def _look(self, key: Key) -> float | None:
        found = self._api.store.get(_SETS, *key)
        if found is None:
            return None
        body = found.read()
        pods = [entry.read() for _, entry in self._owned.of(found.uid, "pods")]
        there = [pod for pod in pods if active(pod)]
        wanted = body["spec"].get("replicas", 1)
        refused: RefusalError | None = None
        if not found.deleting:
            template, missing = body["spec"]["template"], wanted - len(there)
            pods = [from_template(body, template) for _ in range(min(missing, AT_ONCE))]
            refused = await self._flock.make(body, pods)
            await self._flock.drop(there, -missing)
        pods = [entry.read() for _, entry in self._owned.of(found.uid, "pods")]
        await self._tell(key, body, [pod for pod in pods if active(pod)], refused)
        return AFTER_REFUSAL if refused is not None else None

    async def _tell(
        self, key: Key, body: Body, there: list[Body], refused: RefusalError | None
    ) -> None:
        """Write how it stands into its status."""
        able = sum(ready(pod) for pod in there)
        status: Body = {"replicas": len(there)}
        if there:
            status["fullyLabeledReplicas"] = len(there)
        if able:
            status |= {"readyReplicas": able, "availableReplicas": able}
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
    for each in before.get("conditions") or ():
        if each.get("type") == "ReplicaFailure":
            return {**condition, "lastTransitionTime": each["lastTransitionTime"]}
    return {**condition, "lastTransitionTime": timestamp()}
