"""Hears of one kind of objects, and has the live cluster know them."""

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
from aliquot.kube.control.objects import manifest_of, name_of, shape_of
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector
from aliquot.kube.webhook.cache import Cache

WATCHED: tuple[Resource, ...] = (
    *(PODS, NODES, NAMESPACES, RESOURCE_QUOTAS, PRIORITY_CLASSES),
    *(each for each in CUSTOM.values() if each.group != VOLCANO_JOBS and each.kind != GPU),
)
"""The kinds that writes are judged by."""

_PLACE = "cluster"
_log = structlog.get_logger()


class CacheListener:
    """A listener of one kind; `on_synced` hears that all there is of it is known."""

    def __init__(self, live: Cache, resource: Resource, on_synced: Callable[[], None]) -> None:
        self._live = live
        self._resource = resource
        self._on_synced = on_synced

    def put(self, found: Any) -> None:
        """An object is there; one that cannot be read is as good as gone."""
        if isinstance(found, PodWire):
            about = found.metadata
            names = ("Pod", "", about.namespace or "default", about.name, _PLACE)
            self._live.put(Manifest(*names, found, {}))
            return
        try:
            manifest = manifest_of(self._resource, found)
        except InputError as error:
            _log.warning("not judged by, because it makes no sense", problem=str(error))
            self._drop(*name_of(found))
            return
        if manifest is not None:
            self._live.put(manifest)

    def gone(self, name: Name) -> None:
        """An object is not there any more."""
        self._drop(name.namespace, name.name)

    def synced(self, resource: Resource) -> None:
        """All there is of this kind is known."""
        self._on_synced()

    def _drop(self, namespace: str, name: str) -> None:
        self._live.drop(self._resource.group, key(self._resource.kind, namespace, name))


def reflector(
    client: Client, live: Cache, resource: Resource, on_synced: Callable[[], None]
) -> Reflector[Any]:
    """Keeps the live cluster informed of one kind."""
    shape = PodWire if resource == PODS else shape_of(resource)
    return Reflector(client, resource, shape, CacheListener(live, resource, on_synced))
