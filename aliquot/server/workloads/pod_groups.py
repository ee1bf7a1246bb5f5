"""PodGroups made for owners of pods: Volcano's Jobs, and workloads that ask for a gang.

They are the groups that a simulation makes. A group is created before any pod that names it, is
updated with its owner, and deleted when the owner no longer asks for it. A group of that name that
a user wrote is used as it is; one of a deleted owner of the same name must be gone first.
"""

from http import HTTPStatus

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import (
    MADE_BY_ALIQUOT,
    VOLCANO_GROUP,
    VOLCANO_JOBS,
    Manifest,
    read,
)
from aliquot.dialects.volcano.made_groups import group_name, pod_group
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.dialects.volcano.queues import DEFAULT
from aliquot.errors import InputError, RefusalError
from aliquot.json import Body
from aliquot.server.admission.priorities import classes
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions
from aliquot.server.kinds.kind import Kind
from aliquot.server.storage.entry import Entry
from aliquot.server.storage.owners import Location, OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import controller

_SOURCE = "cluster"
"""Where errors of manifests say that they are from."""
_DEPLOYMENTS = "deployments.apps"
_GROUPS = f"podgroups.{VOLCANO_GROUP}"
_OWNERS = (
    *(_DEPLOYMENTS, "replicasets.apps", "replicationcontrollers", "statefulsets.apps"),
    *("jobs.batch", f"jobs.{VOLCANO_JOBS}"),
)


class PodGroups:
    """Reconciles the groups of owners, by storage and key of the owner."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for storage in _OWNERS:
            for entry in api.store.all(storage):
                self.worker.enqueue((storage, entry.key))

    def _on_change(self, change: Change) -> None:
        if change.storage in _OWNERS:
            self.worker.enqueue((change.storage, change.entry.key))
        elif change.storage == _GROUPS:
            for storage in _OWNERS:
                for owner in self._owners.owners_in(storage, change):
                    self.worker.enqueue((storage, owner))

    async def ensure(self, owner: Body) -> str:
        """The name of the group of an owner's pods, created if it is missing; empty if none.

        All pods of a Deployment are in one group, whichever ReplicaSet they belong to.
        """
        above = self._owners.locate(controller(owner))
        if above is not None and above[0] == _DEPLOYMENTS:
            owner = self._api.find(self._api.kind("Deployment"), *above[1]).read()
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
            await self._apply(kind, owner, wanted)
        return name

    async def _reconcile(self, location: Location) -> float | None:
        found = self._api.store.get(location[0], *location[1])
        if found is None or found.deleting:
            return None
        if not await self.ensure(found.read()):
            for _, each in self._owners.dependents(found.uid, _GROUPS):
                await self._delete(each, found.uid)
        return None

    async def _apply(self, kind: Kind, owner: Body, wanted: Body) -> None:
        """Create the group if it is missing; update it if the owner controls it."""
        namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
        present = self._api.store.get(_GROUPS, namespace, name)
        if present is None:
            try:
                await self._api.create(kind, namespace, wanted)
            except RefusalError as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
            return
        if self._in_deletion(present):
            message = f"PodGroup {namespace}/{name} is left from before, and about to go"
            raise RefusalError(HTTPStatus.CONFLICT, "Conflict", message)
        uid = owner["metadata"]["uid"]

        def edit(body: Body) -> Body:
            if controller(body) == uid:
                body["spec"] = {**body["spec"], **_without_default_queue(wanted["spec"])}
            return body

        body = present.read()
        if edit(present.read()) != body:
            await self._api.change(kind, namespace, name, edit)

    def _in_deletion(self, group: Entry) -> bool:
        """Is a group in deletion, or will it be collected because its owners are gone?"""
        gone = group.owners and all(self._owners.locate(uid) is None for uid in group.owners)
        return group.deleting or bool(gone)

    async def _delete(self, group: Entry, uid: str) -> None:
        """Delete a group that Volcano would have made; the control plane keeps its own."""
        kind, body = self._kind(), group.read()
        labels = body["metadata"].get("labels") or {}
        if MADE_BY_ALIQUOT.items() <= labels.items():
            return
        if kind is None or group.deleting or controller(body) != uid:
            return
        options = DeleteOptions(preconditions=Preconditions(uid=group.uid))
        await self._api.delete(kind, group.namespace, group.name, options)

    def _wanted(self, manifest: Manifest) -> Body:
        """The group of an owner, as a simulation makes it."""
        if not isinstance(manifest.content, GangJobWire):
            return pod_group(manifest).body
        priorities = classes(self._api.store).task_priorities(manifest)
        return pod_group(manifest, priorities).body

    def _kind(self) -> Kind | None:
        """The kind PodGroup; None without its CustomResourceDefinition."""
        return self._api.registry.named(f"{VOLCANO_GROUP}/v1beta1", "PodGroup")


def _without_default_queue(spec: Body) -> Body:
    """The spec to update; an owner that names no queue keeps the one that admission set."""
    return {key: value for key, value in spec.items() if (key, value) != ("queue", DEFAULT)}


def manifest_of(body: Body) -> Manifest:
    """An object of a kind that matters to scheduling, parsed; InputError if it is invalid."""
    manifest = read(Document(_SOURCE, body))
    assert manifest is not None
    return manifest
