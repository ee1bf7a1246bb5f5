"""ResourceQuotas: their status, updated whenever the usage of their namespace changes."""

from aliquot.json import Body
from aliquot.server.admission.resource_quotas import QUOTAS, UsageIndex
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Key
from aliquot.server.storage.window import Change


class Quotas:
    """Reconciles ResourceQuotas, by key."""

    def __init__(self, api: Api, usage: UsageIndex) -> None:
        self._api, self._usage = api, usage
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(QUOTAS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == QUOTAS:
            self.worker.enqueue(change.entry.key)
        elif change.entry.namespace and (change.type != "MODIFIED" or change.storage == "pods"):
            for entry in self._api.store.all(QUOTAS, change.entry.namespace):
                self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(QUOTAS, *key)
        if found is None:
            return None
        body = found.read()
        status = self._usage.status(key[0], (body.get("spec") or {}).get("hard") or {})
        if status != body.get("status"):

            def edit(present: Body) -> Body:
                present["status"] = status
                return present

            await self._api.change(self._api.kind("ResourceQuota"), *key, edit, "status")
        return None
