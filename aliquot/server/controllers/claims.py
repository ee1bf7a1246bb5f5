"""PersistentVolumeClaims: bound to a volume that fits, or to one that is made for them.

Volumes are as simulated as nodes: a claim of a StorageClass gets a volume at once, whatever its
provisioner and its binding mode. A claim that names no class has the default one.
"""

from collections.abc import Iterator
from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.admission.quota_usage import nanos
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.kinds.kind import Kind
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.entry import Key
from aliquot.server.storage.window import Change

_CLAIMS, _VOLUMES = "persistentvolumeclaims", "persistentvolumes"
_CLASSES = "storageclasses.storage.k8s.io"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
DRIVER = "sim.aliquot.dev"
DEFAULT_CLASS: Body = {
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {_DEFAULT: "true"}},
    "provisioner": DRIVER,
}
"""The class of claims that name none."""


class Claims:
    """Reconciles claims and volumes, by storage and key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        self._claim, self._volume = (
            api.kind(each) for each in ("PersistentVolumeClaim", "PersistentVolume")
        )
        api.store.listeners.append(self._on_change)
        for storage in (_VOLUMES, _CLAIMS):
            for entry in api.store.all(storage):
                self.worker.enqueue((storage, entry.key))

    def _on_change(self, change: Change) -> None:
        if change.storage in (_CLAIMS, _VOLUMES):
            self.worker.enqueue((change.storage, change.entry.key))
        if change.type == "DELETED" and change.storage == _CLAIMS:
            for entry in self._api.store.all(_VOLUMES):
                self.worker.enqueue((_VOLUMES, entry.key))
        elif change.storage in (_VOLUMES, _CLASSES):
            for entry in self._api.store.all(_CLAIMS):
                self.worker.enqueue((_CLAIMS, entry.key))

    async def _reconcile(self, work: tuple[str, Key]) -> None:
        storage, key = work
        found = self._api.store.get(storage, *key)
        if found is None or found.deleting:
            return
        if storage == _VOLUMES:
            await self._look_after(found.read())
        elif (found.read().get("status") or {}).get("phase") != "Bound":
            await self._bind(found.read())

    async def _look_after(self, volume: Body) -> None:
        """A volume is Available, Bound, or, when its claim is gone, Released or deleted."""
        claim = volume["spec"].get("claimRef")
        phase = "Available" if claim is None else "Bound"
        if claim is not None and claim.get("uid") and not self._exists(claim):
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                await self._delete(volume["metadata"]["name"])
                return
            phase = "Released"
        elif claim is not None and not claim.get("uid"):
            phase = "Available"
        if (volume.get("status") or {}).get("phase") != phase:
            await self._write(self._volume, volume, {"phase": phase})

    def _exists(self, claim: Body) -> bool:
        found = self._api.store.get(_CLAIMS, claim.get("namespace", ""), claim.get("name", ""))
        return found is not None and found.uid == claim.get("uid")

    async def _bind(self, claim: Body) -> None:
        name = self._class(claim)
        fitting = sorted(self._fitting(claim, name or ""), key=_size)
        volume = fitting[0] if fitting else None
        if volume is None:
            made = self._api.store.get(_CLASSES, "", name) if name else None
            if made is None or claim["spec"].get("volumeName"):
                return
            volume = await self._provision(claim, made.read())
        metadata, spec = claim["metadata"], volume["spec"]
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{word: metadata[word] for word in ("name", "namespace", "uid")},
        }

        def take(body: Body) -> Body:
            body["spec"]["claimRef"] = {**(body["spec"].get("claimRef") or {}), **reference}
            return body

        await self._api.change(self._volume, None, volume["metadata"]["name"], take)

        def name_volume(body: Body) -> Body:
            body["spec"]["volumeName"] = volume["metadata"]["name"]
            if name is not None:
                body["spec"].setdefault("storageClassName", name)
            return body

        await self._api.change(self._claim, metadata["namespace"], metadata["name"], name_volume)
        status = {"accessModes": spec["accessModes"], "capacity": spec["capacity"]}
        await self._write(self._claim, claim, {"phase": "Bound", **status})

    def _class(self, claim: Body) -> str | None:
        """The class of a claim: its own, or the default one; None if there is none."""
        written = claim["spec"].get("storageClassName")
        if written is not None:
            return str(written)
        marked = (
            entry.name
            for entry in self._api.store.all(_CLASSES)
            if (entry.read()["metadata"].get("annotations") or {}).get(_DEFAULT) == "true"
        )
        return min(marked, default=None)

    def _fitting(self, claim: Body, name: str) -> Iterator[Body]:
        """The volumes that fit a claim and are free, or wait for it."""
        spec, own = claim["spec"], claim["metadata"]
        asked = nanos(((spec.get("resources") or {}).get("requests") or {}).get("storage", 0))
        selector = Labels.of(spec.get("selector") or {})
        for entry in self._api.store.all(_VOLUMES):
            volume = entry.read()
            has, holder = volume["spec"], volume["spec"].get("claimRef") or {}
            mine = (holder.get("namespace"), holder.get("name")) == (own["namespace"], own["name"])
            if holder and not (mine and holder.get("uid") in (None, "", own["uid"])):
                continue
            if (
                not entry.deleting
                and spec.get("volumeName") in (None, "", entry.name)
                and (has.get("storageClassName") or "") == name
                and set(spec.get("accessModes") or ()) <= set(has.get("accessModes") or ())
                and _size(volume)[0] >= asked
                and (selector is None or selector.match(entry.labels))
            ):
                yield volume

    async def _provision(self, claim: Body, made_by: Body) -> Body:
        """Make a volume for a claim, as its class would."""
        name = f"pvc-{claim['metadata']['uid']}"
        spec: Body = {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "csi": {"driver": made_by["provisioner"], "volumeHandle": name},
            "persistentVolumeReclaimPolicy": made_by.get("reclaimPolicy") or "Delete",
            "storageClassName": made_by["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        }
        found = self._api.store.get(_VOLUMES, "", name)
        if found is None:
            found = await self._api.create(
                self._volume, None, {"metadata": {"name": name}, "spec": spec}
            )
        return found.read()

    async def _write(self, kind: Kind, body: Body, status: Body) -> None:
        metadata = body["metadata"]

        def edit(shown: Body) -> Body:
            shown["status"] = {**(shown.get("status") or {}), **status}
            return shown

        where = (metadata.get("namespace"), metadata["name"])
        await self._api.change(kind, *where, edit, "status")

    async def _delete(self, name: str) -> None:
        try:
            await self._api.delete(self._volume, None, name, DeleteOptions())
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise


def _size(volume: Body) -> tuple[int, str]:
    capacity = volume["spec"].get("capacity") or {}
    return nanos(capacity.get("storage", 0)), str(volume["metadata"]["name"])
