"""Garbage collection: dependents are deleted after their owner, before it, or orphaned."""

from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api, Edit
from aliquot.server.controllers.worker import Worker
from aliquot.server.deletion import FOREGROUND, ORPHAN
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change


class Garbage:
    """Reconciles owners that are deleted or in deletion, by uid."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for storage in api.store.storages():
            for entry in api.store.all(storage):
                self._enqueue_owners(entry)

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            self.worker.enqueue(change.entry.uid)
            for uid in change.entry.owners:
                self.worker.enqueue(uid)
        elif change.type == "ADDED" or change.entry.deleting:
            self._enqueue_owners(change.entry)

    def _enqueue_owners(self, entry: Entry) -> None:
        for uid in entry.owners:
            if self._owners.locate(uid) is None:
                self.worker.enqueue(uid)
        if entry.deleting:
            self.worker.enqueue(entry.uid)

    async def _reconcile(self, uid: str) -> float | None:
        place, owner = self._owners.locate(uid), self._owners.get(uid)
        if place is None or owner is None:
            await self._delete_dependents(uid)
            return None
        if not owner.deleting:
            return None
        finalizers = owner.read()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for storage, each in self._owners.dependents(uid):
                await self._remove_reference(storage, each, uid)
            await self._remove_finalizer(place[0], owner, ORPHAN)
        elif FOREGROUND in finalizers:
            await self._foreground(place[0], owner)
        return None

    async def _delete_dependents(self, uid: str) -> None:
        """The owner is deleted: delete its dependents, unless another owner of theirs exists."""
        for storage, each in self._owners.dependents(uid):
            if any(self._owners.locate(other) is not None for other in each.owners):
                await self._remove_reference(storage, each, uid)
            elif not each.deleting:
                await self._delete(storage, each, "Background")

    async def _foreground(self, storage: str, owner: Entry) -> None:
        """Foreground deletion: the owner blocked for the dependents that block it."""
        blocked = False
        for where, each in self._owners.dependents(owner.uid):
            references = each.read()["metadata"]["ownerReferences"]
            mine = next(ref for ref in references if ref["uid"] == owner.uid)
            blocked = blocked or bool(mine.get("blockOwnerDeletion"))
            others = [uid for uid in each.owners if uid != owner.uid]
            if any(self._owners.locate(uid) is not None for uid in others):
                await self._remove_reference(where, each, owner.uid)
            elif not each.deleting:
                await self._delete(where, each, "Foreground")
        if not blocked or not any(self._owners.dependents(owner.uid)):
            await self._remove_finalizer(storage, owner, FOREGROUND)

    async def _delete(self, storage: str, entry: Entry, policy: str) -> None:
        options = DeleteOptions(
            propagation_policy=policy, preconditions=Preconditions(uid=entry.uid)
        )
        try:
            await self._api.delete(self._kind(storage), entry.namespace, entry.name, options)
        except RefusalError as refusal:
            if refusal.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    async def _remove_reference(self, storage: str, entry: Entry, uid: str) -> None:
        def edit(body: Body) -> Body:
            metadata = body["metadata"]
            left = [ref for ref in metadata.get("ownerReferences") or () if ref["uid"] != uid]
            metadata["ownerReferences"] = left
            return body

        await self._change(storage, entry, edit)

    async def _remove_finalizer(self, storage: str, entry: Entry, finalizer: str) -> None:
        def edit(body: Body) -> Body:
            metadata = body["metadata"]
            left = [each for each in metadata.get("finalizers") or () if each != finalizer]
            metadata["finalizers"] = left
            return body

        await self._change(storage, entry, edit)

    async def _change(self, storage: str, entry: Entry, edit: Edit) -> None:
        try:
            kind = self._kind(storage)
            await self._api.change(kind, entry.namespace, entry.name, edit)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise

    def _kind(self, storage: str) -> Kind:
        return self._api.registry.stored_in(storage)
