"""The verbs of the API, for requests and for the server's own controllers alike.

Between reading an object and writing it, another write may come first: then an update is computed
anew from the current object, unless it names a resourceVersion, which is refused as a conflict.
"""

from collections.abc import Callable
from http import HTTPStatus

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.admission.admission import Admission
from aliquot.server.deletion import Deletion
from aliquot.server.http.options import DeleteOptions, WriteOptions
from aliquot.server.http.refusals import already_exists, bad_request, forbidden, not_found
from aliquot.server.kinds.kind import Kind
from aliquot.server.kinds.registry import Registry
from aliquot.server.ownership import ownership
from aliquot.server.ownership.writer import Writer
from aliquot.server.rules import metadata
from aliquot.server.rules import object_rules as rules
from aliquot.server.rules.initial_status import drop_status, set_initial_status
from aliquot.server.rules.metadata import Managers
from aliquot.server.selectors.selection import Selection
from aliquot.server.storage.entry import Entry, dry_run_entry
from aliquot.server.storage.store import Store
from aliquot.server.subresources.resize import with_resources_of

Edit = Callable[[Body], Body]
"""Makes the updated object from a copy of the current one."""

_VERSION_REQUIRED = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "CustomResourceDefinition",
        "Lease",
        "MutatingWebhookConfiguration",
        "PodDisruptionBudget",
        "RuntimeClass",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
    }
)
"""Built-in kinds that are replaced only with a resourceVersion, as in kube-apiserver."""
_UNDELETABLE = ("default", "kube-public", "kube-system")
"""The namespaces that kube-apiserver refuses to delete."""
_TRIES = 20
"""Attempts of an update; each failed one means that another write succeeded meanwhile."""
_NO_OPTIONS = WriteOptions()


class Api:
    """Get, list, create, update and delete objects."""

    def __init__(self, store: Store, registry: Registry, admission: Admission) -> None:
        self.store, self.registry, self.admission = store, registry, admission
        self._namespace = registry.require("Namespace")

    def kind(self, unique_name: str) -> Kind:
        """A kind that must be served, by its unique name."""
        return self.registry.require(unique_name)

    def find(self, kind: Kind, namespace: str | None, name: str) -> Entry:
        """An object as it is now; not found is refused."""
        found = self.store.get(kind.storage, namespace or "", name)
        if found is None:
            raise not_found(kind, name)
        return found

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Entry:
        """An object, once it is in the log."""
        found = self.find(kind, namespace, name)
        await self.store.wait_durable()
        return found

    def select(self, kind: Kind, chosen: Selection) -> list[Entry]:
        """The objects of a selection, in order."""
        if chosen.name is not None and (chosen.namespace is not None or not kind.namespaced):
            one = self.store.get(kind.storage, chosen.namespace or "", chosen.name)
            return [one] if one is not None and chosen.match(one) else []
        found = self.store.all(kind.storage, chosen.namespace)
        return found if chosen.everything else [each for each in found if chosen.match(each)]

    async def create(
        self,
        kind: Kind,
        namespace: str | None,
        body: Body,
        options: WriteOptions = _NO_OPTIONS,
        applied: bool = False,
    ) -> Entry:
        """Create an object; one that was applied carries the entries of its managers already."""
        given = metadata.take_managers(body)
        metadata.normalize(body, kind)
        metadata.stamp_new(kind, namespace or "", body)
        self._check_namespace(kind, namespace, body)
        drop_status(kind, body)
        body = rules.fill_defaults(kind, rules.drop_unknown(kind, body, options))
        managers: Managers = given
        if not applied:
            managers = ownership.created(_writer(kind, "", options), body)
        set_initial_status(kind, body)
        body, managers = await self.admission.create(kind, body, managers, options)
        rules.check_new(kind, body)
        name = body["metadata"].get("name", "")
        if not name:
            raise bad_request("name or generateName is required")
        if self.store.get(kind.storage, namespace or "", name) is not None:
            raise already_exists(kind, name)
        self._check_namespace(kind, namespace, body)
        self.admission.charge(kind, body)
        metadata.set_managers(body, managers)
        return await self._write(kind, body, options)

    async def change(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        edit: Edit,
        subresource: str = "",
        options: WriteOptions = _NO_OPTIONS,
        applied: bool = False,
    ) -> Entry:
        """Update an object, or a subresource of it; see `create` for one that was applied."""
        writer = _writer(kind, subresource, options)
        for _ in range(_TRIES):
            present = self.find(kind, namespace, name)
            old, edited = present.read(), edit(present.read())
            held, given = metadata.take_managers(old), metadata.take_managers(edited)
            new = self._updated(kind, old, edited, subresource, options)
            managers: Managers = given
            if not applied:
                managers = ownership.updated(writer, old, new, held, given)
            new, managers = await self.admission.update(
                kind, old, new, managers, subresource, options
            )
            resized = subresource == "resize"
            rules.check_change(kind, with_resources_of(old, new) if resized else old, new)
            metadata.count_generation(kind, old, new)
            if self.store.get(kind.storage, namespace or "", name) is not present:
                continue
            self.admission.allocate(kind, new)
            if new == old and metadata.same_but_times(held, managers):
                await self.store.wait_durable()
                return present
            metadata.set_managers(new, managers)
            return await self._write(kind, new, options)
        raise RefusalError(
            HTTPStatus.CONFLICT, "Conflict", f'{kind.resource} "{name}" keeps changing; try again'
        )

    async def apply(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        config: Body,
        subresource: str = "",
        options: WriteOptions = _NO_OPTIONS,
    ) -> tuple[Entry, bool]:
        """Server-side apply; the object, and whether it is new."""
        writer = _writer(kind, subresource, options)

        def edit(live: Body) -> Body:
            rules.check_uid(kind, live, config)
            return ownership.applied(writer, live, config, options.force)

        if not subresource and self.store.get(kind.storage, namespace or "", name) is None:
            body = ownership.applied(writer, None, config, options.force)
            metadata.check_new_identity(kind, body, name)
            try:
                return await self.create(kind, namespace, body, options, applied=True), True
            except RefusalError as refusal:
                if refusal.reason != "AlreadyExists":
                    raise
        kept = await self.change(kind, namespace, name, edit, subresource, options, applied=True)
        return kept, False

    async def replace(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        body: Body,
        subresource: str = "",
        options: WriteOptions = _NO_OPTIONS,
    ) -> Entry:
        """Replace an object, or its status."""
        metadata.normalize(body, kind)
        metadata.set_namespace(kind, namespace or "", dict(body["metadata"]))
        given = body["metadata"].get("resourceVersion") or None
        if given is None and (kind.definition is not None or kind.unique_name in _VERSION_REQUIRED):
            self.find(kind, namespace, name)
            raise rules.version_required(kind, name)

        def edit(_: Body) -> Body:
            return {**body, "metadata": dict(body["metadata"])}

        return await self.change(kind, namespace, name, edit, subresource, options)

    async def delete(
        self, kind: Kind, namespace: str | None, name: str, options: DeleteOptions
    ) -> tuple[Entry, bool]:
        """Delete an object; its last state, and whether it is gone already."""
        found = self.find(kind, namespace, name)
        if kind.unique_name == "Namespace" and name in _UNDELETABLE:
            raise forbidden(kind, name, "this namespace may not be deleted")
        deletion = Deletion(kind, found, options)
        await self.admission.delete(kind, found, deletion.dry)
        found = self.find(kind, namespace, name)
        outcome = Deletion(kind, found, options).outcome()
        if deletion.dry or outcome.unchanged:
            return found, False
        if outcome.gone:
            last = self.store.remove(kind.storage, outcome.body)
        else:
            last = self.store.put(kind.storage, outcome.body)
        await self.store.wait_durable()
        return last, outcome.gone

    def _updated(
        self, kind: Kind, old: Body, new: Body, subresource: str, options: WriteOptions
    ) -> Body:
        """The updated object: a write of the status changes only the status, and the reverse."""
        metadata.normalize(new, kind)
        new = rules.drop_unknown(kind, new, options)
        if subresource == "status":
            new = _only_status(kind, old, new)
        metadata.carry_over(kind, old, new)
        if not subresource and kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if kind.unique_name == "Namespace" and subresource != "finalize":
            new["spec"] = old.get("spec") or {}
        return rules.fill_defaults(kind, new)

    async def _write(self, kind: Kind, body: Body, options: WriteOptions) -> Entry:
        if options.dry_run:
            return dry_run_entry(kind.storage, body)
        if "deletionTimestamp" in body["metadata"] and _can_be_removed(body):
            kept = self.store.remove(kind.storage, body)
        else:
            kept = self.store.put(kind.storage, body)
        await self.store.wait_durable()
        return kept

    def _check_namespace(self, kind: Kind, namespace: str | None, body: Body) -> None:
        if not kind.namespaced:
            return
        found = self.find(self._namespace, None, namespace or "")
        if found.deleting:
            why = (
                f"unable to create new content in namespace {namespace} "
                "because it is being terminated"
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(kind, body["metadata"].get("name", ""), why, [cause])


def _writer(kind: Kind, subresource: str, options: WriteOptions) -> Writer:
    return Writer(options.manager, options.served or kind, subresource, metadata.timestamp())


def _only_status(kind: Kind, old: Body, new: Body) -> Body:
    """The old object with the new status; of built-in kinds, labels and annotations, too."""
    kept = {**old, "metadata": dict(old["metadata"])}
    kept.pop("status", None)
    if "status" in new:
        kept["status"] = new["status"]
    given = new["metadata"]
    if given.get("resourceVersion"):
        kept["metadata"]["resourceVersion"] = given["resourceVersion"]
    if given.get("uid"):
        kept["metadata"]["uid"] = given["uid"]
    for key in ("labels", "annotations") if kind.definition is None else ():
        kept["metadata"].pop(key, None)
        if key in given:
            kept["metadata"][key] = given[key]
    return kept


def _can_be_removed(body: Body) -> bool:
    """Has an object in deletion neither finalizers nor a grace period left?"""
    meta = body["metadata"]
    if meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (body["kind"] == "Namespace" and (body.get("spec") or {}).get("finalizers"))
