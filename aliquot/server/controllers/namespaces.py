"""Namespaces: a new one gets its default service account; one in deletion is emptied first."""

from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.storage.window import Change

_ACCOUNT = "default"


class Namespaces:
    """Reconciles namespaces, by name."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all("namespaces"):
            self.worker.enqueue(entry.name)

    def _on_change(self, change: Change) -> None:
        if change.storage == "namespaces" and change.type != "DELETED":
            self.worker.enqueue(change.entry.name)
        elif change.type == "DELETED" and change.entry.namespace:
            self.worker.enqueue(change.entry.namespace)

    async def _reconcile(self, name: str) -> float | None:
        found = self._api.store.get("namespaces", "", name)
        if found is None:
            return None
        if not found.deleting:
            await self._create_account(name)
            return None
        if await self._empty(name):
            await self._finalize(name)
        return None

    async def _create_account(self, namespace: str) -> None:
        kind = self._api.kind("ServiceAccount")
        if self._api.store.get(kind.storage, namespace, _ACCOUNT) is None:
            await self._api.create(kind, namespace, {"metadata": {"name": _ACCOUNT}})

    async def _empty(self, namespace: str) -> bool:
        """Delete the objects of a namespace; are all gone?"""
        for kind in self._api.registry.storage_kinds():
            for each in self._api.store.all(kind.storage, namespace) if kind.namespaced else ():
                if not each.deleting:
                    await self._delete(kind.unique_name, namespace, each.name)
        return not any(
            self._api.store.all(kind.storage, namespace)
            for kind in self._api.registry.storage_kinds()
            if kind.namespaced
        )

    async def _delete(self, kind_name: str, namespace: str, name: str) -> None:
        options = DeleteOptions(propagation_policy="Background")
        try:
            await self._api.delete(self._api.kind(kind_name), namespace, name, options)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    async def _finalize(self, name: str) -> None:
        def edit(body: Body) -> Body:
            body["spec"] = {
                "finalizers": [
                    each for each in body["spec"].get("finalizers") or () if each != "kubernetes"
                ]
            }
            return body

        await self._api.change(self._api.kind("Namespace"), None, name, edit, "finalize")
