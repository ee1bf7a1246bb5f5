"""Namespaces: a new one gets its service account; one that goes takes its objects along first."""

from http import HTTPStatus

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.storage.window import Change

_ACCOUNT = "default"


class Namespaces:
    """Looks at namespaces, by name."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for entry in api.store.all("namespaces"):
            self.worker.add(entry.name)

    def _note(self, change: Change) -> None:
        if change.storage == "namespaces" and change.type != "DELETED":
            self.worker.add(change.entry.name)
        elif change.type == "DELETED" and change.entry.namespace:
            self.worker.add(change.entry.namespace)

    async def _look(self, name: str) -> float | None:
        found = self._api.store.get("namespaces", "", name)
        if found is None:
            return None
        if not found.deleting:
            await self._account(name)
            return None
        if await self._empty(name):
            await self._finish(name)
        return None

    async def _account(self, namespace: str) -> None:
        kind = self._api.kind("ServiceAccount")
        if self._api.store.get(kind.kept_as, namespace, _ACCOUNT) is None:
            await self._api.create(kind, namespace, {"metadata": {"name": _ACCOUNT}})

    async def _empty(self, namespace: str) -> bool:
        """Delete what is there; is nothing left?"""
        for kind in self._api.registry.kept():
            for each in self._api.store.all(kind.kept_as, namespace) if kind.namespaced else ():
                if not each.deleting:
                    await self._delete(kind.word, namespace, each.name)
        return not any(
            self._api.store.all(kind.kept_as, namespace)
            for kind in self._api.registry.kept()
            if kind.namespaced
        )

    async def _delete(self, word: str, namespace: str, name: str) -> None:
        options = DeleteOptions(propagation_policy="Background")
        try:
            await self._api.delete(self._api.kind(word), namespace, name, options)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    async def _finish(self, name: str) -> None:
        def edit(body: Body) -> Body:
            body["spec"] = {
                "finalizers": [
                    each for each in body["spec"].get("finalizers") or () if each != "kubernetes"
                ]
            }
            return body

        await self._api.change(self._api.kind("Namespace"), None, name, edit, "finalize")
