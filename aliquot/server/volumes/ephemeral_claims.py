"""Generic ephemeral volumes: the claims that pods bring along, and that go with them.

The claim of a pod's volume is named by both, and owned by the pod, so that it is collected after
the pod. One of that name that another owner has is left alone: the pod waits.
"""

from collections.abc import Iterator
from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body, fresh
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
        pod = found.read()
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = ephemeral_claim_name(pod, volume)
            if template is None or self._api.store.get(CLAIMS, found.namespace, name) is not None:
                continue
            await self._create(pod, name, template)

    async def _create(self, pod: Body, name: str, template: Body) -> None:
        about, written = pod["metadata"], template.get("metadata") or {}
        owner = {
            **{"apiVersion": "v1", "kind": "Pod", "name": about["name"], "uid": about["uid"]},
            **{"controller": True, "blockOwnerDeletion": True},
        }
        metadata = {
            "name": name,
            "labels": dict(written.get("labels") or {}),
            "annotations": dict(written.get("annotations") or {}),
            "ownerReferences": [owner],
        }
        claim: Body = {"metadata": metadata, "spec": fresh(template.get("spec") or {})}
        try:
            await self._api.create(self._claim, about["namespace"], claim)
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
