"""PodGroups that nobody writes: those of Volcano's Jobs, and of owners of pods that ask for one.

They are the groups that a simulation makes. A group is there before any pod that names it, follows
its owner, and goes when it is asked for no more. One of that name that somebody else wrote is used
as it is; one that was left by an owner of the same name is waited out.
"""

from http import HTTPStatus

from aliquot.dialects.core.documents import Body, Document
from aliquot.dialects.core.manifest import VOLCANO_GROUP, VOLCANO_JOBS, Manifest, read
from aliquot.dialects.core.objects import GangJobWire
from aliquot.dialects.volcano.made_groups import group_name, pod_group
from aliquot.dialects.volcano.queues import DEFAULT
from aliquot.errors import InputError, RefusalError
from aliquot.mirror.store import Store as Mirrored
from aliquot.mirror.store import priority_infos
from aliquot.server.api import Api
from aliquot.server.controllers.pods import reference
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.owners import Owned, Place
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import controller

_PLACE = "cluster"
_DEPLOYMENTS, _CLASSES = "deployments.apps", "priorityclasses.scheduling.k8s.io"
_GROUPS = f"podgroups.{VOLCANO_GROUP}"
_OWNERS = (_DEPLOYMENTS, "replicasets.apps", "jobs.batch", f"jobs.{VOLCANO_JOBS}")


class PodGroups:
    """Looks at owners of pods, by storage and key."""

    def __init__(self, api: Api, owned: Owned) -> None:
        self._api, self._owned = api, owned
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for storage in _OWNERS:
            for entry in api.store.all(storage):
                self.worker.add((storage, entry.key))

    def _note(self, change: Change) -> None:
        if change.storage in _OWNERS:
            self.worker.add((change.storage, change.entry.key))
        elif change.storage == _GROUPS:
            for uid in change.entry.owners:
                place = self._owned.place(uid)
                if place is not None and place[0] in _OWNERS:
                    self.worker.add(place)

    async def of(self, owner: Body) -> str:
        """The name of the group that an owner's pods are in, which is there then; empty if none.

        The pods of a Deployment are in one group, whichever ReplicaSet they are of.
        """
        speaker = self._owned.place(controller(owner))
        if speaker is not None and speaker[0] == _DEPLOYMENTS:
            owner = self._api.find(self._api.kind("Deployment"), *speaker[1]).read()
        try:
            manifest = manifest_of(owner)
            name = group_name(manifest)
            wanted = self._wanted(manifest) if name is not None else {}
        except InputError as error:
            raise RefusalError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f"{error.field}: {error.problem}"
            ) from None
        if name is None:
            return ""
        kind = self._kind()
        if kind is not None:
            await self._keep(kind, owner, wanted)
        return name

    async def _look(self, place: Place) -> float | None:
        found = self._api.store.get(place[0], *place[1])
        if found is None or found.deleting:
            return None
        if not await self.of(found.read()):
            for _, each in self._owned.of(found.uid, _GROUPS):
                await self._drop(each, found.uid)
        return None

    async def _keep(self, kind: Kind, owner: Body, wanted: Body) -> None:
        """Make the group if it is not there; if it is the owner's, have it as it should be."""
        namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
        present = self._api.store.get(_GROUPS, namespace, name)
        if present is None:
            wanted["metadata"]["ownerReferences"] = [reference(owner)]
            try:
                await self._api.create(kind, namespace, wanted)
            except RefusalError as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
            return
        if self._leaves(present):
            message = f"PodGroup {namespace}/{name} is left from before, and about to go"
            raise RefusalError(HTTPStatus.CONFLICT, "Conflict", message)
        uid = owner["metadata"]["uid"]

        def edit(body: Body) -> Body:
            if controller(body) == uid:
                body["spec"] = {**body["spec"], **_said(wanted["spec"])}
            return body

        body = present.read()
        if edit(present.read()) != body:
            await self._api.change(kind, namespace, name, edit)

    def _leaves(self, group: Entry) -> bool:
        """Is a group about to go, by itself or because its owners have?"""
        gone = group.owners and all(self._owned.place(uid) is None for uid in group.owners)
        return group.deleting or bool(gone)

    async def _drop(self, group: Entry, uid: str) -> None:
        kind = self._kind()
        if kind is None or group.deleting or controller(group.read()) != uid:
            return
        options = DeleteOptions(preconditions=Preconditions(uid=group.uid))
        await self._api.delete(kind, group.namespace, group.name, options)

    def _wanted(self, manifest: Manifest) -> Body:
        """The group of an owner, as a simulation would make it."""
        if not isinstance(manifest.content, GangJobWire):
            return pod_group(manifest).body
        classes = Mirrored()
        for entry in self._api.store.all(_CLASSES):
            classes.put(manifest_of(entry.read()))
        priorities = {task: each[0] for task, each in priority_infos(manifest, classes).items()}
        return pod_group(manifest, priorities).body

    def _kind(self) -> Kind | None:
        """PodGroups, while their definition is there."""
        return self._api.registry.named(f"{VOLCANO_GROUP}/v1beta1", "PodGroup")


def _said(spec: Body) -> Body:
    """What an owner has to say; who names no queue leaves it to whoever admits the group."""
    return {key: value for key, value in spec.items() if (key, value) != ("queue", DEFAULT)}


def manifest_of(body: Body) -> Manifest:
    """An object of a kind that has a part in scheduling, read; what makes no sense is refused."""
    manifest = read(Document(_PLACE, body))
    assert manifest is not None
    return manifest
