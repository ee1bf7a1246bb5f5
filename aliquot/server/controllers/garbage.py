"""Garbage collection: what is owned goes with its owners, before them, or is left behind."""

from http import HTTPStatus

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.api import Api, Edit
from aliquot.server.controllers.worker import Worker
from aliquot.server.deletion import FOREGROUND, ORPHAN
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.owners import Owned
from aliquot.server.storage.window import Change


class Garbage:
    """Looks at owners that go, by their uid."""

    def __init__(self, api: Api, owned: Owned) -> None:
        self._api, self._owned = api, owned
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for storage in api.store.storages():
            for entry in api.store.all(storage):
                self._mention(entry)

    def _note(self, change: Change) -> None:
        if change.type == "DELETED":
            self.worker.add(change.entry.uid)
            for uid in change.entry.owners:
                self.worker.add(uid)
        elif change.type == "ADDED" or change.entry.deleting:
            self._mention(change.entry)

    def _mention(self, entry: Entry) -> None:
        for uid in entry.owners:
            if self._owned.place(uid) is None:
                self.worker.add(uid)
        if entry.deleting:
            self.worker.add(entry.uid)

    async def _look(self, uid: str) -> float | None:
        place, owner = self._owned.place(uid), self._owned.owner(uid)
        if place is None or owner is None:
            await self._collect(uid)
            return None
        if not owner.deleting:
            return None
        finalizers = owner.read()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for storage, each in self._owned.of(uid):
                await self._disown(storage, each, uid)
            await self._release(place[0], owner, ORPHAN)
        elif FOREGROUND in finalizers:
            await self._foreground(place[0], owner)
        return None

    async def _collect(self, uid: str) -> None:
        """An owner is gone: what it owned goes, too, unless somebody else owns it as well."""
        for storage, each in self._owned.of(uid):
            if any(self._owned.place(other) is not None for other in each.owners):
                await self._disown(storage, each, uid)
            elif not each.deleting:
                await self._delete(storage, each, "Background")

    async def _foreground(self, storage: str, owner: Entry) -> None:
        """An owner waits for what it owns to go first."""
        waits = False
        for where, each in self._owned.of(owner.uid):
            references = each.read()["metadata"]["ownerReferences"]
            mine = next(ref for ref in references if ref["uid"] == owner.uid)
            waits = waits or bool(mine.get("blockOwnerDeletion"))
            others = [uid for uid in each.owners if uid != owner.uid]
            if any(self._owned.place(uid) is not None for uid in others):
                await self._disown(where, each, owner.uid)
            elif not each.deleting:
                await self._delete(where, each, "Foreground")
        if not waits or not any(self._owned.of(owner.uid)):
            await self._release(storage, owner, FOREGROUND)

    async def _delete(self, storage: str, entry: Entry, policy: str) -> None:
        options = DeleteOptions(
            propagation_policy=policy, preconditions=Preconditions(uid=entry.uid)
        )
        try:
            await self._api.delete(self._kind(storage), entry.namespace, entry.name, options)
        except RefusalError as refusal:
            if refusal.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    async def _disown(self, storage: str, entry: Entry, uid: str) -> None:
        def edit(body: Body) -> Body:
            metadata = body["metadata"]
            left = [ref for ref in metadata.get("ownerReferences") or () if ref["uid"] != uid]
            metadata["ownerReferences"] = left
            return body

        await self._change(storage, entry, edit)

    async def _release(self, storage: str, entry: Entry, finalizer: str) -> None:
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
        return self._api.registry.kept_in(storage)
