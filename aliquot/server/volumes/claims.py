"""Binds claims and volumes to each other, as Kubernetes' PersistentVolume controller does.

A claim is bound at once, or, if its class waits for a first consumer, as soon as a scheduler has
given a volume a reference to it, or the claim a node near which its volume is to be made. Who waits
for a binding waits for what is written last: the annotation of the claim.
"""

from collections.abc import Iterable
from http import HTTPStatus

from aliquot.dialects.core.storage.volumes import BIND_COMPLETED, SELECTED_NODE
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api, Edit
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.window import Change
from aliquot.server.volumes import fit, provisioner
from aliquot.server.volumes.keys import (
    BOUND_BY_CONTROLLER,
    CLAIMS,
    CLASSES,
    CSI_NODES,
    PROVISIONED_BY,
    PROVISIONERS,
    VOLUMES,
    annotations,
    class_of,
    default_class,
    refers_to,
)


class Claims:
    """Reconciles claims and volumes, by storage and key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        self._claim, self._volume = (
            api.kind(each) for each in ("PersistentVolumeClaim", "PersistentVolume")
        )
        self._unbound: set[Key] = set()
        """The claims for which a volume or a class may come."""
        api.store.listeners.append(self._on_change)
        for storage in (VOLUMES, CLAIMS):
            for entry in api.store.all(storage):
                self._enqueue(storage, entry)

    def _on_change(self, change: Change) -> None:
        if change.storage == CLAIMS and change.type == "DELETED":
            self._unbound.discard(change.entry.key)
            self._enqueue_volumes_of(change.entry)
        elif change.storage in (CLAIMS, VOLUMES):
            self._enqueue(change.storage, change.entry)
        elif change.storage == CLASSES:
            self._enqueue_claims(self._unbound)

    def _enqueue(self, storage: str, entry: Entry) -> None:
        """Reconcile an object, and what it may be bound to."""
        self.worker.enqueue((storage, entry.key))
        body = entry.read()
        if storage == CLAIMS:
            bound = (body.get("status") or {}).get("phase") == "Bound"
            (self._unbound.discard if bound else self._unbound.add)(entry.key)
            if body["spec"].get("volumeName"):
                self.worker.enqueue((VOLUMES, ("", body["spec"]["volumeName"])))
            return
        reference = body["spec"].get("claimRef")
        if reference:
            self._enqueue_claims([(reference.get("namespace", ""), reference.get("name", ""))])
        else:
            self._enqueue_claims(self._unbound)

    def _enqueue_claims(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.worker.enqueue((CLAIMS, key))

    def _enqueue_volumes_of(self, claim: Entry) -> None:
        """A claim is gone: its volumes are released."""
        body = claim.read()
        for entry in self._api.store.all(VOLUMES):
            if refers_to(entry.read(), body):
                self.worker.enqueue((VOLUMES, entry.key))

    async def _reconcile(self, work: tuple[str, Key]) -> None:
        storage, key = work
        found = self._api.store.get(storage, *key)
        if found is None:
            return
        body = found.read()
        if storage == VOLUMES:
            await self._settle_volume(body)
        elif BIND_COMPLETED in annotations(body):
            await self._keep_bound(body)
        elif not found.deleting:
            await self._settle_claim(body)

    # Volumes.

    async def _settle_volume(self, volume: Body) -> None:
        """A volume is Available, Bound, or, when its claim is gone, Released or deleted."""
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            await self._set_phase(volume, "Available")
            return
        where = reference.get("namespace", ""), reference.get("name", "")
        found = self._api.store.get(CLAIMS, *where)
        if found is None or found.uid != reference["uid"]:
            await self._release(volume)
            return
        bound_to = found.read()["spec"].get("volumeName")
        if bound_to == volume["metadata"]["name"]:
            await self._set_phase(volume, "Bound")
        elif bound_to:
            await self._free(volume)

    async def _release(self, volume: Body) -> None:
        """The claim of a volume is gone."""
        await self._set_phase(volume, "Released")
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await self._delete(volume)

    async def _free(self, volume: Body) -> None:
        """The claim of a volume is bound to another one."""
        if PROVISIONED_BY in annotations(volume):
            await self._release(volume)
            return

        def forget(body: Body) -> Body:
            if annotations(body).pop(BOUND_BY_CONTROLLER, None) is None:
                (body["spec"].get("claimRef") or {}).pop("uid", None)
            else:
                body["spec"].pop("claimRef", None)
            return body

        await self._edit(self._volume, volume, forget)

    # Claims.

    async def _keep_bound(self, claim: Body) -> None:
        """A bound claim has a volume that refers to it, or is Lost."""
        name = claim["spec"].get("volumeName")
        found = self._api.store.get(VOLUMES, "", name) if name else None
        volume = found.read() if found is not None else None
        if volume is None or not (refers_to(volume, claim) or not volume["spec"].get("claimRef")):
            await self._set_status(claim, {"phase": "Lost"})
        else:
            await self._bind(volume, claim)

    async def _settle_claim(self, claim: Body) -> None:
        """Bind a claim, if there is a volume for it, or one can be made."""
        if claim["spec"].get("storageClassName") is None:
            name = default_class(self._api.store)
            if name is not None:
                await self._edit(self._claim, claim, _set_class(name))
                return
        wanted = claim["spec"].get("volumeName")
        if wanted:
            found = self._api.store.get(VOLUMES, "", wanted)
            volume = found.read() if found is not None else None
            if volume is not None and self._may_be_bound(volume, claim):
                await self._bind(volume, claim)
            return
        made_by = self._class(claim)
        waits = made_by is not None and provisioner.waits_for_consumer(made_by)
        delayed = waits and SELECTED_NODE not in annotations(claim)
        known = (entry.read() for entry in self._api.store.all(VOLUMES))
        volume = fit.best(claim, known, only_kept=delayed)
        if volume is None and made_by is not None and not delayed:
            volume = await self._provision(claim, made_by)
        if volume is not None:
            await self._bind(volume, claim)

    def _may_be_bound(self, volume: Body, claim: Body) -> bool:
        """May a claim have the volume that it names?"""
        kept = bool(volume["spec"].get("claimRef"))
        return refers_to(volume, claim) if kept else fit.serves(volume, claim)

    def _class(self, claim: Body) -> Body | None:
        name = class_of(claim)
        found = self._api.store.get(CLASSES, "", name) if name else None
        return found.read() if found is not None else None

    async def _provision(self, claim: Body, made_by: Body) -> Body | None:
        """Make a volume for a claim; if none can be made near its node, give the node back."""
        if not provisioner.provisions(made_by):
            return None
        noted = dict.fromkeys(PROVISIONERS, str(made_by["provisioner"]))
        await self._edit(self._claim, claim, lambda body: _annotate(body, noted))
        reachable = self._topology(claim, made_by)
        if reachable is None:
            await self._edit(self._claim, claim, _without_node)
            return None
        made = provisioner.volume(claim, made_by, reachable)
        found = self._api.store.get(VOLUMES, "", made["metadata"]["name"])
        if found is None:
            found = await self._api.create(self._volume, None, made)
        return found.read()

    def _topology(self, claim: Body, made_by: Body) -> provisioner.Topology | None:
        selected = annotations(claim).get(SELECTED_NODE)
        if not selected:
            return provisioner.topology_without_node(made_by)
        node = self._api.store.get("nodes", "", selected)
        if node is None:
            return None
        own = self._api.store.get(CSI_NODES, "", selected)
        drivers = ((own.read().get("spec") or {}).get("drivers") or ()) if own is not None else ()
        keys = [
            key
            for each in drivers
            if each.get("name") == made_by["provisioner"]
            for key in each.get("topologyKeys") or ()
        ]
        return provisioner.topology(made_by, node.labels, keys)

    async def _bind(self, volume: Body, claim: Body) -> None:
        """Bind a volume and a claim to each other, the annotation of the claim last."""
        about, name = claim["metadata"], volume["metadata"]["name"]
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{word: about[word] for word in ("name", "namespace", "uid")},
        }

        def take(body: Body) -> Body:
            held = body["spec"].get("claimRef")
            if held and not refers_to(body, claim):
                raise RefusalError(HTTPStatus.CONFLICT, "Conflict", f"{name} was taken meanwhile")
            if not held:
                _annotate(body, {BOUND_BY_CONTROLLER: "yes"})
            body["spec"]["claimRef"] = {**(held or {}), **reference}
            return body

        def name_volume(body: Body) -> Body:
            if not body["spec"].get("volumeName"):
                body["spec"]["volumeName"] = name
                _annotate(body, {BOUND_BY_CONTROLLER: "yes"})
            return _annotate(body, {BIND_COMPLETED: "yes"})

        await self._edit(self._volume, volume, take)
        await self._set_phase(volume, "Bound")
        await self._edit(self._claim, claim, name_volume)
        spec = volume["spec"]
        has = {"accessModes": spec["accessModes"], "capacity": spec["capacity"]}
        await self._set_status(claim, {"phase": "Bound", **has})

    # Writes.

    async def _set_phase(self, volume: Body, phase: str) -> None:
        await self._set_status(volume, {"phase": phase})

    async def _set_status(self, body: Body, status: Body) -> None:
        """Write a status, if it is not so already."""

        def edit(shown: Body) -> Body:
            kept = {} if status["phase"] == "Lost" else shown.get("status") or {}
            shown["status"] = {**kept, **status}
            return shown

        before = body.get("status") or {}
        if any(before.get(key) != value for key, value in status.items()):
            kind = self._claim if body["kind"] == "PersistentVolumeClaim" else self._volume
            await self._edit(kind, body, edit, "status")

    async def _edit(self, kind: Kind, body: Body, edit: Edit, subresource: str = "") -> None:
        """Edit the object of this uid: another of its name is left alone."""
        about = body["metadata"]

        def same(present: Body) -> Body:
            return edit(present) if present["metadata"]["uid"] == about["uid"] else present

        await self._api.change(kind, about.get("namespace"), about["name"], same, subresource)

    async def _delete(self, volume: Body) -> None:
        if "deletionTimestamp" in volume["metadata"]:
            return
        try:
            await self._api.delete(self._volume, None, volume["metadata"]["name"], DeleteOptions())
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                raise


def _annotate(body: Body, noted: dict[str, str]) -> Body:
    body["metadata"]["annotations"] = {**annotations(body), **noted}
    return body


def _without_node(body: Body) -> Body:
    annotations(body).pop(SELECTED_NODE, None)
    return body


def _set_class(name: str) -> Edit:
    def edit(body: Body) -> Body:
        body["spec"]["storageClassName"] = name
        return body

    return edit
