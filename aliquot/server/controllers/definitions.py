"""CustomResourceDefinitions in deletion: the objects of their kinds are deleted first."""

from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.kinds.definitions import CLEANUP, DEFINITIONS
from aliquot.server.storage.window import Change

_RECHECK_SECONDS = 0.5
"""How often to look whether its objects are gone: those with finalizers take their time."""


class Definitions:
    """Reconciles definitions in deletion, by name."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(DEFINITIONS):
            self.worker.enqueue(entry.name)

    def _on_change(self, change: Change) -> None:
        if change.storage == DEFINITIONS and change.entry.deleting and change.type == "MODIFIED":
            self.worker.enqueue(change.entry.name)

    async def _reconcile(self, name: str) -> float | None:
        found = self._api.store.get(DEFINITIONS, "", name)
        if found is None or not found.deleting:
            return None
        spec = found.read()["spec"]
        storage = f"{spec['names']['plural']}.{spec['group']}"
        for each in self._api.store.all(storage):
            if not each.deleting:
                await self._delete(storage, each.namespace, each.name)
        if self._api.store.all(storage):
            return _RECHECK_SECONDS
        await self._remove_finalizer(name)
        return None

    async def _delete(self, storage: str, namespace: str, name: str) -> None:
        try:
            kind = self._api.registry.stored_in(storage)
            await self._api.delete(kind, namespace, name, DeleteOptions())
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    async def _remove_finalizer(self, name: str) -> None:
        def edit(body: Body) -> Body:
            about = body["metadata"]
            about["finalizers"] = [each for each in about["finalizers"] if each != CLEANUP]
            return body

        await self._api.change(self._api.kind("CustomResourceDefinition"), None, name, edit)
