"""Fills the webhook's cache: one listener and one reflector for each kind."""

from collections.abc import Callable
from typing import Any

import structlog

from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest, key
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.tensor_fusion.gpus import KIND as GPU
from aliquot.errors import InputError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import (
    CUSTOM,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    Resource,
)
from aliquot.kube.intake.objects import body_of, manifest_of, name_of, shape_of
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector
from aliquot.kube.watch.valid_objects import PLACE
from aliquot.kube.webhook.cache import Cache

WATCHED: tuple[Resource, ...] = (
    *(PODS, NODES, NAMESPACES, RESOURCE_QUOTAS, PRIORITY_CLASSES),
    *(each for each in CUSTOM.values() if each.group != VOLCANO_JOBS and each.kind != GPU),
)
"""The kinds that writes are validated against."""

_log = structlog.get_logger()


class CacheListener:
    """Puts the objects of one kind into the cache; calls `on_synced` after the first list."""

    def __init__(self, cache: Cache, resource: Resource, on_synced: Callable[[], None]) -> None:
        self._cache = cache
        self._resource = resource
        self._on_synced = on_synced

    def put(self, found: Any) -> None:
        """An object was created or changed; of an invalid one, the last valid version counts."""
        if isinstance(found, PodWire):
            metadata = found.metadata
            names = ("Pod", "", metadata.namespace or "default", metadata.name, PLACE)
            self._cache.put(Manifest(*names, found, {}))
            return
        try:
            manifest = manifest_of(self._resource, found)
        except InputError as error:
            _log.warning("not judged by, because it makes no sense", problem=str(error))
            named = key(self._resource.kind, *name_of(found))
            self._cache.keep_last_valid(self._resource.group, named, body_of(self._resource, found))
            return
        if manifest is not None:
            self._cache.put(manifest)

    def gone(self, name: Name) -> None:
        """An object was deleted."""
        self._drop(name.namespace, name.name)

    def synced(self, resource: Resource) -> None:
        """The first list of this kind is complete."""
        self._on_synced()

    def _drop(self, namespace: str, name: str) -> None:
        self._cache.drop(self._resource.group, key(self._resource.kind, namespace, name))


def reflector(
    client: Client, cache: Cache, resource: Resource, on_synced: Callable[[], None]
) -> Reflector[Any]:
    """The reflector that keeps one kind of the cache up to date."""
    shape = PodWire if resource == PODS else shape_of(resource)
    return Reflector(client, resource, shape, CacheListener(cache, resource, on_synced))
