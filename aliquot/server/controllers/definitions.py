"""Definitions: a kind is served while its definition is there, and takes its objects along."""

from http import HTTPStatus

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.kinds.definitions import CLEANUP, DEFINITIONS
from aliquot.server.storage.window import Change

_AGAIN = 0.5


class Definitions:
    """Looks at definitions that are to go, by name."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for entry in api.store.all(DEFINITIONS):
            self.worker.add(entry.name)

    def _note(self, change: Change) -> None:
        if change.storage == DEFINITIONS and change.entry.deleting and change.type == "MODIFIED":
            self.worker.add(change.entry.name)

    async def _look(self, name: str) -> float | None:
        found = self._api.store.get(DEFINITIONS, "", name)
        if found is None or not found.deleting:
            return None
        spec = found.read()["spec"]
        storage = f"{spec['names']['plural']}.{spec['group']}"
        for each in self._api.store.all(storage):
            if not each.deleting:
                await self._delete(storage, each.namespace, each.name)
        if self._api.store.all(storage):
            return _AGAIN
        await self._release(name)
        return None

    async def _delete(self, storage: str, namespace: str, name: str) -> None:
        try:
            kind = self._api.registry.kept_in(storage)
            await self._api.delete(kind, namespace, name, DeleteOptions())
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    async def _release(self, name: str) -> None:
        def edit(body: Body) -> Body:
            about = body["metadata"]
            about["finalizers"] = [each for each in about["finalizers"] if each != CLEANUP]
            return body

        await self._api.change(self._api.kind("CustomResourceDefinition"), None, name, edit)
