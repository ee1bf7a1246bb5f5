"""ResourceQuotas: their status, kept up to date with what their namespace takes."""

from aliquot.json import Body
from aliquot.server.admission.resource_quotas import QUOTAS, Books
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Key
from aliquot.server.storage.window import Change


class Quotas:
    """Looks at quotas, by key."""

    def __init__(self, api: Api, books: Books) -> None:
        self._api, self._books = api, books
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for entry in api.store.all(QUOTAS):
            self.worker.add(entry.key)

    def _note(self, change: Change) -> None:
        if change.storage == QUOTAS:
            self.worker.add(change.entry.key)
        elif change.entry.namespace and (change.type != "MODIFIED" or change.storage == "pods"):
            for entry in self._api.store.all(QUOTAS, change.entry.namespace):
                self.worker.add(entry.key)

    async def _look(self, key: Key) -> float | None:
        found = self._api.store.get(QUOTAS, *key)
        if found is None:
            return None
        body = found.read()
        status = self._books.status(key[0], (body.get("spec") or {}).get("hard") or {})
        if status != body.get("status"):

            def edit(present: Body) -> Body:
                present["status"] = status
                return present

            await self._api.change(self._api.kind("ResourceQuota"), *key, edit, "status")
        return None
