"""Objects other than pods, as they are watched: which of them stand, and which changes matter.

Much of what is written into objects is our own word coming back: a status, figures in annotations.
Such a change is kept, to be compared with what we would write, but nothing follows from it. An
object that makes no sense leaves the last good one in force. Two groups can have objects of one
kind and name; one of them stands, the other waits for it to go.
"""

from dataclasses import replace
from typing import Any

import structlog

from aliquot.dialects.core import budgets
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import (
    KEP9_GROUPS,
    NOS_GROUPS,
    VOLCANO_GROUP,
    Key,
    Manifest,
    read,
)
from aliquot.dialects.core.objects import Metadata, NodeWire
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.kep9.quotas import KINDS as QUOTA_KINDS
from aliquot.dialects.koordinator.status import FIGURES
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire
from aliquot.dialects.tensor_fusion.quotas import KIND as GPU_QUOTA
from aliquot.dialects.volcano.gangs import KIND as POD_GROUP
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.api.resource import NODES, Resource
from aliquot.mirror.mirror import Mirror

_PLACE = "cluster"
_OURS = {*QUOTA_KINDS, POD_GROUP, GPU_QUOTA}
"""The kinds whose status nobody but us writes, so that nothing follows from it."""
BEAR_ON_TERMS = {*QUOTA_KINDS, "Queue", "Node", "GPU", GPU_QUOTA}
"""The kinds that decide on what terms the cluster is shared."""
_RANKS = {group: rank for rank, group in enumerate((VOLCANO_GROUP, *KEP9_GROUPS, *NOS_GROUPS))}
_log = structlog.get_logger()


class Objects:
    """The objects of a cluster, kept in a mirror."""

    def __init__(self, mirror: Mirror) -> None:
        self.stirred = False
        """Has anything changed that bears on the terms on which the cluster is shared?"""
        self.broken: dict[tuple[str, Key], str] = {}
        """What is wrong with objects that make no sense, by their group and key."""
        self._mirror = mirror
        self._rivals: dict[Key, dict[str, Manifest]] = {}
        self._changed: list[Key] = []
        self._budgets: dict[Key, None] = {}
        self._unread: dict[tuple[str, Key], tuple[Resource, Any]] = {}

    def put(self, resource: Resource, found: Any) -> None:
        """An object is there, like this."""
        manifest = self._read(resource, found)
        if manifest is None:
            return
        rivals = self._rivals.setdefault(manifest.key, {})
        rivals[manifest.group] = manifest
        self._stand(manifest.key)

    def gone(self, resource: Resource, namespace: str, name: str) -> None:
        """An object is no longer there."""
        key = (resource.kind, namespace, name)
        self._forget(resource.group, key)
        rivals = self._rivals.get(key, {})
        if rivals.pop(resource.group, None) is None:
            return
        if not rivals:
            del self._rivals[key]
        self._stand(key)

    def settle(self) -> None:
        """Tell what follows from all that has come and gone since the last time."""
        if any(kind == "PriorityClass" for kind, _, _ in self._changed):
            for resource, found in list(self._unread.values()):
                self.put(resource, found)
        if self._changed:
            changed, self._changed = self._changed, []
            self._mirror.refresh(changed, _age)
            for key in changed:
                if key[0] == "PodDisruptionBudget":
                    self._note_budget(key)

    def _note_budget(self, key: Key) -> None:
        manifest = self._mirror.store.objects.get(key)
        if manifest is None:
            self._budgets.pop(key, None)
        else:
            self._budgets[key] = None
            self._mirror.send_budget(manifest)

    def restate_budgets(self) -> None:
        """Say anew what budgets allow of which nobody else says it."""
        store = self._mirror.store
        for key in self._budgets:
            if not budgets.has_status(store.objects[key]):
                self._mirror.send_budget(store.objects[key])

    def _stand(self, key: Key) -> None:
        """Let the one of this name stand that comes first by its group."""
        store = self._mirror.store
        old, rivals = store.objects.get(key), self._rivals.get(key, {})
        new = min(rivals.values(), key=lambda each: _RANKS.get(each.group, 0), default=None)
        if new is None:
            if old is not None:
                store.remove(key)
                self._mirror.send_removal(old)
                self._change(key)
            return
        if len(rivals) > 1 and new is not old:
            _log.warning("several of one name", object=new.title, standing=new.group)
        store.put(new)
        if old is None or _matter(old) != _matter(new):
            self._change(key)

    def _change(self, key: Key) -> None:
        self._changed.append(key)
        self.stirred = self.stirred or key[0] in BEAR_ON_TERMS

    def _read(self, resource: Resource, found: Any) -> Manifest | None:
        try:
            manifest = manifest_of(resource, found)
            if manifest is not None:
                self._mirror.store.check(manifest)
        except InputError as error:
            where = (resource.group, (resource.kind, *name_of(found)))
            self._unread[where] = (resource, found)
            self._leave_in_force(resource, found, error)
            if self.broken.get(where) != str(error):
                self.broken[where] = str(error)
                _log.warning("left as it was, because it makes no sense", problem=str(error))
            return None
        if manifest is not None:
            self._forget(manifest.group, manifest.key)
        return manifest

    def _leave_in_force(self, resource: Resource, found: Any, error: InputError) -> None:
        """Keep the last good object; what the cluster shows of it is what is written now.

        A quota on GPUs that never made sense lets nobody have any: it is not to be got around by
        writing nonsense into it.
        """
        key = (resource.kind, *name_of(found))
        good = self._rivals.get(key, {}).get(resource.group)
        if good is None and resource.kind == GPU_QUOTA:
            content = GpuQuotaWire(metadata=Metadata(name=key[2], namespace=key[1]))
            good = Manifest(resource.kind, resource.group, key[1], key[2], _PLACE, content, {})
        if good is None or isinstance(found, NodeWire):
            return
        kept = replace(good, body=_body(resource, found))
        self._rivals.setdefault(key, {})[resource.group] = kept
        if resource.kind == GPU_QUOTA:
            self._mirror.gpu_quotas.problems[key[1:]] = f"{error.field}: {error.problem}"
            self._change(key)
        standing = self._mirror.store.objects.get(key)
        if standing is None or standing.group == resource.group:
            self._mirror.store.put(kept)

    def _forget(self, group: str, key: Key) -> None:
        if key[0] == GPU_QUOTA:
            self._mirror.gpu_quotas.problems.pop(key[1:], None)
        self.broken.pop((group, key), None)
        self._unread.pop((group, key), None)


def name_of(found: Any) -> tuple[str, str]:
    """Namespace and name of an object."""
    if isinstance(found, NodeWire):
        return "", found.metadata.name
    about = found.get("metadata") or {}
    return about.get("namespace") or "", about.get("name") or ""


def shape_of(resource: Resource) -> type[Any]:
    """What objects of a kind are decoded to: whole, unless there are very many and large ones."""
    return NodeWire if resource == NODES else dict


def manifest_of(resource: Resource, found: Any) -> Manifest | None:
    """An object as it is read; None if it has no part here."""
    if isinstance(found, NodeWire):
        return Manifest("Node", "", "", found.metadata.name, _PLACE, found, {})
    return read(Document(_PLACE, _body(resource, found)))


def _body(resource: Resource, found: Body) -> Body:
    """An object as it would be alone; in a list it does not say what it is."""
    return {**found, "kind": resource.kind, "apiVersion": resource.api_version}


def _matter(manifest: Manifest) -> object:
    """What of an object anything follows from."""
    if isinstance(manifest.content, NodeWire):
        node = manifest.content
        return node.metadata.labels, node.spec, node.status
    about: Body = manifest.body.get("metadata") or {}
    annotations = about.get("annotations") or {}
    said = {key: value for key, value in annotations.items() if key not in FIGURES}
    rest = {
        key: value
        for key, value in manifest.body.items()
        if key not in ("metadata", "status") or (key == "status" and manifest.kind not in _OURS)
    }
    status = manifest.body.get("status") or {}
    if manifest.kind == "Queue":
        rest["status"] = status.get("state")
    if manifest.kind == "GPU":
        rest["status"] = {key: value for key, value in status.items() if key != "available"}
    return about.get("labels") or {}, said, rest, about.get("deletionTimestamp")


def _age(manifest: Manifest) -> int:
    written = manifest.metadata.creation_timestamp
    return timestamp(written, _PLACE, "metadata.creationTimestamp") or 0
