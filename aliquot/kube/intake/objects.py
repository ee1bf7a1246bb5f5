"""Objects other than pods, from the watch into the mirror: which are in force, what changed.

Most changes are Aliquot's own writes coming back: a status, figures in annotations. They are kept,
to be compared with what is to be written, but the mirror is told of no change.
"""

from typing import Any

import structlog

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, Manifest, metadata_of, read, shape_of_kind
from aliquot.dialects.core.objects import (
    NodeStatus,
    NodeWire,
    SelectionWire,
    Wire,
)
from aliquot.dialects.core.storage.volumes import storage_object
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.frameworks.gangs import wants_gang
from aliquot.dialects.frameworks.objects import PlainJobWire
from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.dialects.kep9.quotas import KINDS as QUOTA_KINDS
from aliquot.dialects.koordinator.keys import FIGURES
from aliquot.dialects.koordinator.profiles import KIND as PROFILE
from aliquot.dialects.tensor_fusion.derived_gpus import DOMAINS as GPU_DOMAINS
from aliquot.dialects.tensor_fusion.quotas import KIND as GPU_QUOTA
from aliquot.dialects.volcano.gangs import KIND as POD_GROUP
from aliquot.dialects.volcano.hyper_nodes import KIND as HYPER_NODE
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.api.resource import NODES, OWNERS, PLAIN_JOBS, SERVICES, STORAGE, Resource
from aliquot.kube.watch.valid_objects import PLACE, ValidObjects
from aliquot.mirror.mirror import Mirror

_OWN_STATUS = {*QUOTA_KINDS, POD_GROUP, GPU_QUOTA, HYPER_NODE, *BY_KIND}
"""The kinds whose status only Aliquot writes, or is never read: a change of it is no news."""
_SHAPES: dict[Resource, type[Wire]] = {
    NODES: NodeWire,
    **{each: shape for each in STORAGE if (shape := shape_of_kind(each.group, each.kind))},
    **dict.fromkeys((SERVICES, *OWNERS), SelectionWire),
    PLAIN_JOBS: PlainJobWire,
}
"""What objects are decoded to of which there may be many: no more is kept than is read."""
SHARING_MODE_KINDS = {*QUOTA_KINDS, PROFILE, "Queue", "Node", "GPU", GPU_QUOTA}
"""The kinds that the sharing mode depends on."""
_log = structlog.get_logger()


class Objects:
    """The objects of a cluster but pods, applied to a mirror."""

    def __init__(self, mirror: Mirror) -> None:
        self.dirty = False
        """Has an object changed that the sharing mode depends on?"""
        self.problems: dict[tuple[str, Key], str] = {}
        """What is wrong with invalid objects, by group and key."""
        self._mirror = mirror
        self._valid = ValidObjects()
        self._changed: list[Key] = []
        self._invalid: dict[tuple[str, Key], tuple[Resource, Any]] = {}

    def put(self, resource: Resource, found: Any) -> None:
        """An object was created or changed. Of Jobs, only those count that ask for a gang."""
        if isinstance(found, PlainJobWire) and not wants_gang(found):
            self.gone(resource, *name_of(found))
            return
        manifest = self._read(resource, found)
        if manifest is None:
            return
        self._valid.put(manifest)
        self._put_in_force(manifest.key)

    def gone(self, resource: Resource, namespace: str, name: str) -> None:
        """An object was deleted."""
        key = (resource.kind, namespace, name)
        self._forget(resource.group, key)
        if self._valid.drop(resource.group, key):
            self._put_in_force(key)

    def settle(self) -> None:
        """Tell the mirror of all changes since the last time.

        An invalid object may only miss its PriorityClass: it is read again when one has changed.
        """
        if any(kind == "PriorityClass" for kind, _, _ in self._changed):
            for resource, found in list(self._invalid.values()):
                self.put(resource, found)
        if self._changed:
            changed, self._changed = self._changed, []
            self._mirror.refresh(changed, _created)
            for key in changed:
                if key[0] == "PodDisruptionBudget" and key in self._mirror.store.objects:
                    self._mirror.send_budget(self._mirror.store.objects[key])

    def _put_in_force(self, key: Key) -> None:
        """Put the object in force of those with this key."""
        store = self._mirror.store
        old, new = store.objects.get(key), self._valid.in_force(key)
        if new is None:
            if old is not None:
                store.remove(key)
                self._mirror.send_removal(old)
                self._change(key)
            return
        if len(self._valid.groups(key)) > 1 and new is not old:
            _log.warning("several of one name", object=new.title, standing=new.group)
        store.put(new)
        if old is None or _relevant(old) != _relevant(new):
            self._change(key)
        elif _images(old) != _images(new):
            self._changed.append(key)

    def _change(self, key: Key) -> None:
        self._changed.append(key)
        self.dirty = self.dirty or key[0] in SHARING_MODE_KINDS

    def _read(self, resource: Resource, found: Any) -> Manifest | None:
        try:
            manifest = manifest_of(resource, found)
            if manifest is not None:
                self._mirror.store.check(manifest)
        except InputError as error:
            where = (resource.group, (resource.kind, *name_of(found)))
            self._invalid[where] = (resource, found)
            self._keep_last_valid(resource, found, error)
            if self.problems.get(where) != str(error):
                self.problems[where] = str(error)
                _log.warning("left as it was, because it makes no sense", problem=str(error))
            return None
        if manifest is not None:
            self._forget(manifest.group, manifest.key)
        return manifest

    def _keep_last_valid(self, resource: Resource, found: Any, error: InputError) -> None:
        """Keep the last valid version of an object in force; what is many is left as it was."""
        if isinstance(found, Wire):
            return
        key = (resource.kind, *name_of(found))
        kept = self._valid.keep(resource.group, key, body_of(resource, found))
        if kept is None:
            return
        if resource.kind == GPU_QUOTA:
            self._mirror.gpu_quotas.problems[key[1:]] = f"{error.field}: {error.problem}"
            self._change(key)
        in_force = self._mirror.store.objects.get(key)
        if in_force is None or in_force.group == resource.group:
            self._mirror.store.put(kept)

    def _forget(self, group: str, key: Key) -> None:
        if key[0] == GPU_QUOTA:
            self._mirror.gpu_quotas.problems.pop(key[1:], None)
        self.problems.pop((group, key), None)
        self._invalid.pop((group, key), None)


def name_of(found: Any) -> tuple[str, str]:
    """Namespace and name of an object."""
    if isinstance(found, Wire):
        about = metadata_of(found)
        return about.namespace or "", about.name
    metadata = found.get("metadata") or {}
    return metadata.get("namespace") or "", metadata.get("name") or ""


def shape_of(resource: Resource) -> type[Any]:
    """What objects of a kind are decoded to: `dict`, but for what is many and never written."""
    return _SHAPES.get(resource, dict)


def manifest_of(resource: Resource, found: Any) -> Manifest | None:
    """An object as a manifest; None if its kind does not matter here."""
    if isinstance(found, PlainJobWire):
        return _asking_job(resource, found)
    if isinstance(found, Wire):
        namespace, name = name_of(found)
        return Manifest(resource.kind, resource.group, namespace, name, PLACE, found, {})
    return read(Document(PLACE, body_of(resource, found)))


def _asking_job(resource: Resource, found: PlainJobWire) -> Manifest:
    """A Job that asks for a gang, with as much of its body as its PodGroup refers to."""
    namespace, name = name_of(found)
    metadata = {"name": name, "namespace": namespace, "uid": found.metadata.uid}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return Manifest(resource.kind, resource.group, namespace, name, PLACE, found, body)


def body_of(resource: Resource, found: Body) -> Body:
    """An object with kind and apiVersion, which the items of a list do not have."""
    return {**found, "kind": resource.kind, "apiVersion": resource.api_version}


def _relevant(manifest: Manifest) -> object:
    """The part of an object whose change is news, without what Aliquot itself writes."""
    if isinstance(manifest.content, NodeWire):
        node = manifest.content
        has = node.status or NodeStatus()
        near = (node.metadata.annotations or {}).get(GPU_DOMAINS)
        figures = has.allocatable, has.capacity, has.conditions
        return node.metadata.labels, near, node.spec, *figures
    if isinstance(manifest.content, SelectionWire):
        return manifest.content.spec
    if isinstance(manifest.content, PlainJobWire):
        return manifest.content.spec, manifest.metadata.annotations, manifest.metadata.labels
    storage = storage_object(manifest)
    if storage is not None:
        return storage
    metadata: Body = manifest.body.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    others = {key: value for key, value in annotations.items() if key not in FIGURES}
    rest = {
        key: value
        for key, value in manifest.body.items()
        if key not in ("metadata", "status")
        or (key == "status" and manifest.kind not in _OWN_STATUS)
    }
    status = manifest.body.get("status") or {}
    if manifest.kind == "Queue":
        rest["status"] = status.get("state")
    if manifest.kind == "GPU":
        rest["status"] = {key: value for key, value in status.items() if key != "available"}
    return metadata.get("labels") or {}, others, rest, metadata.get("deletionTimestamp")


def _images(manifest: Manifest) -> object:
    """What a kubelet reports of its images, often, and which is no other news."""
    if not isinstance(manifest.content, NodeWire) or manifest.content.status is None:
        return None
    return manifest.content.status.images


def _created(manifest: Manifest) -> int:
    written = manifest.metadata.creation_timestamp
    return timestamp(written, PLACE, "metadata.creationTimestamp") or 0
