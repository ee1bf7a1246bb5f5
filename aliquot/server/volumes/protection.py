"""Claims and volumes that are in use are not removed: their finalizer stays until they are not.

Admission gives the finalizers. A claim is in use while a pod that has a node mounts it, a volume
while it is bound.
"""

from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import finished
from aliquot.server.volumes.ephemeral_claims import claims_of
from aliquot.server.volumes.keys import CLAIM_FINALIZER, CLAIMS, VOLUME_FINALIZER, VOLUMES


class Protection:
    """Reconciles claims and volumes in deletion, by storage and key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        self._kinds = {
            CLAIMS: api.kind("PersistentVolumeClaim"),
            VOLUMES: api.kind("PersistentVolume"),
        }
        self._claims: set[Key] = set()
        """The claims in deletion: pods are looked at only for their sake."""
        api.store.listeners.append(self._on_change)
        for storage in self._kinds:
            for entry in api.store.all(storage):
                self._note(storage, entry)

    def _on_change(self, change: Change) -> None:
        if change.storage == "pods":
            for key in [key for key in self._claims if key[0] == change.entry.namespace]:
                self.worker.enqueue((CLAIMS, key))
        elif change.storage in self._kinds:
            if change.type == "DELETED":
                self._claims.discard(change.entry.key)
            else:
                self._note(change.storage, change.entry)

    def _note(self, storage: str, entry: Entry) -> None:
        if entry.deleting:
            if storage == CLAIMS:
                self._claims.add(entry.key)
            self.worker.enqueue((storage, entry.key))

    async def _reconcile(self, work: tuple[str, Key]) -> None:
        storage, key = work
        found = self._api.store.get(storage, *key)
        if found is None or not found.deleting:
            return
        finalizer = CLAIM_FINALIZER if storage == CLAIMS else VOLUME_FINALIZER
        body = found.read()
        if finalizer not in (body["metadata"].get("finalizers") or ()):
            return
        used = self._is_mounted(found) if storage == CLAIMS else _is_bound(body)
        if used:
            return

        def release(present: Body) -> Body:
            kept = [each for each in present["metadata"]["finalizers"] if each != finalizer]
            present["metadata"]["finalizers"] = kept
            return present

        await self._api.change(self._kinds[storage], *key, release)

    def _is_mounted(self, claim: Entry) -> bool:
        for entry in self._api.store.all("pods", claim.namespace):
            if entry.selectable["spec"].get("nodeName"):
                pod = entry.read()
                if not finished(pod) and claim.name in claims_of(pod):
                    return True
        return False


def _is_bound(volume: Body) -> bool:
    return bool((volume.get("status") or {}).get("phase") == "Bound")
