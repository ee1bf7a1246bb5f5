"""Generic ephemeral volumes: the claims that pods bring along, and that go with them.

The claim of a pod's volume is named by both, and owned by the pod, so that it is collected after
the pod. One of that name that another owner has is left alone: the pod waits.
"""

from collections.abc import Iterator
from http import HTTPStatus

from aliquot.dialects.claims import ephemeral_claims
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.window import Change
from aliquot.server.volumes.keys import CLAIMS

_MARK = b'"volumeClaimTemplate"'
"""In the JSON of every pod with such a volume: pods without one are not decoded."""


class EphemeralClaims:
    """Reconciles pods with ephemeral volumes, by key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        self._claim = api.kind("PersistentVolumeClaim")
        api.store.listeners.append(self._on_change)
        for entry in api.store.all("pods"):
            self._note(entry)

    def _on_change(self, change: Change) -> None:
        if change.storage == "pods" and change.type != "DELETED":
            self._note(change.entry)

    def _note(self, entry: Entry) -> None:
        if _MARK in entry.body:
            self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> None:
        found = self._api.store.get("pods", *key)
        if found is None or found.deleting:
            return
        for claim in ephemeral_claims(found.read()):
            if self._api.store.get(CLAIMS, found.namespace, claim["metadata"]["name"]) is None:
                await self._create(found.namespace, claim)

    async def _create(self, namespace: str, claim: Body) -> None:
        try:
            await self._api.create(self._claim, namespace, claim)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.CONFLICT:
                raise


def claims_of(pod: Body) -> Iterator[str]:
    """The names of the claims that a pod mounts."""
    for volume in pod["spec"].get("volumes") or ():
        if "ephemeral" in volume:
            yield ephemeral_claim_name(pod, volume)
        elif "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"]["claimName"])


def ephemeral_claim_name(pod: Body, volume: Body) -> str:
    """The name of the claim of a pod's ephemeral volume."""
    return f"{pod['metadata']['name']}-{volume['name']}"
