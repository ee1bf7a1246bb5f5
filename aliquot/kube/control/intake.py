"""The cluster as the control plane sees it: every kind watched, kept in a mirror.

First all objects but pods are read, since they decide on what terms pods are read; then pods, one
by one as they come, so that very many of them never lie around unread. When the terms change, a new
mirror takes the place of the old one, and pods are listed anew. What comes is kept in order until
`settle` is called, so that nothing changes while somebody decides.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import structlog

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.policy import special_quotas
from aliquot.engine import Event
from aliquot.errors import InputError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import (
    BUDGETS,
    CUSTOM,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    Resource,
)
from aliquot.kube.control.objects import BEAR_ON_TERMS, Objects, manifest_of, name_of, shape_of
from aliquot.kube.control.pods import Pods, Unreadable
from aliquot.kube.control.sharing_mode import PodHints, SharingMode, sharing_mode
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector
from aliquot.mirror.mirror import Mirror

_log = structlog.get_logger()

WATCHED: tuple[Resource, ...] = (
    *(NODES, NAMESPACES, RESOURCE_QUOTAS, PRIORITY_CLASSES, BUDGETS),
    *(each for each in CUSTOM.values() if each.group != VOLCANO_JOBS),
)
"""All kinds but pods."""

_SOON = 0.01


@dataclass(slots=True)
class _Inbox:
    """Hears of one kind."""

    resource: Resource
    news: deque[tuple[Resource, Any]]
    wake: Callable[[], None]
    complete: asyncio.Event

    def put(self, found: Any) -> None:
        self.news.append((self.resource, found))
        self.wake()

    def gone(self, name: Name) -> None:
        self.news.append((self.resource, name))
        self.wake()

    def synced(self, resource: Resource) -> None:
        self.complete.set()


class Intake:
    """What is known of the cluster.

    `tell` hears what follows from it, `wake` that there is news.
    """

    def __init__(
        self,
        client: Client,
        configuration: Configuration,
        policy: str | None,
        tell: Callable[[Event], None],
        wake: Callable[[], None],
        unreadable: Unreadable | None = None,
    ) -> None:
        self.names = frozenset(each.scheduler_name for each in configuration.profiles)
        self.reflectors: dict[Resource, Reflector[Any]] = {}
        self.ready = False
        """Has everything been read, on the terms that hold?"""
        self.read_since = 0.0
        """When pods were last begun to be read: whatever was written before is known."""
        self._client = client
        self._configuration = configuration
        self._policy = policy
        self._tell = tell
        self._wake = wake
        self._unreadable = unreadable
        self._found: dict[tuple[Resource, str, str], Any] = {}
        self._news: deque[tuple[Resource, Any]] = deque()
        self._pod_news: deque[tuple[Resource, Any]] = deque()
        self._known = False
        """Have all objects been read, so that the terms are known?"""
        self._complete = {each: asyncio.Event() for each in (*WATCHED, PODS)}
        self._stale = asyncio.Event()
        self._pleas = PodHints()
        self.sharing_mode = sharing_mode(configuration, policy, (), self._pleas)
        self._build()

    def _build(self) -> None:
        """Begin anew, on the terms that hold, with all that is known but pods."""
        special = special_quotas(self.sharing_mode.policy)
        self.mirror = Mirror(self._tell, self.sharing_mode.cards, special, written_here=True)
        self.objects = Objects(self.mirror)
        self.pods = Pods(self.mirror, self.names, self._unreadable)
        for (resource, _, _), found in self._found.items():
            self.objects.put(resource, found)
        self.objects.settle()

    @property
    def missing(self) -> list[str]:
        """The kinds that have not been read yet."""
        return [each.full_name for each, event in self._complete.items() if not event.is_set()]

    async def run(self) -> None:
        """Watch for as long as this is not cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for resource in WATCHED:
                self._group.create_task(self._reflect(resource, shape_of(resource)).run())
            for resource in WATCHED:
                await self._complete[resource].wait()
            self.settle()
            self.sharing_mode, self._known = self._sharing_mode(), True
            while True:
                await self._follow_pods()

    async def _follow_pods(self) -> None:
        """Read and watch pods for as long as the terms hold."""
        why = self.sharing_mode.why
        _log.info("the cluster is shared", policy=self.sharing_mode.policy, because=why)
        self._stale.clear()
        self._complete[PODS].clear()
        self._pod_news = deque()
        self._build()
        self.read_since = time.monotonic()
        self._watching = self._group.create_task(self._reflect(PODS, PodWire).run())
        await self._complete[PODS].wait()
        self.settle()
        if not self._stale.is_set():
            self.ready = True
            self._wake()
            await self._stale.wait()
        self._watching.cancel()

    async def refresh(self) -> None:
        """Read all pods anew, so that whatever was written before is known."""
        reflector = self.reflectors[PODS]
        lists = reflector.lists
        self._watching.cancel()
        reflector.list_again()
        self.read_since = time.monotonic()
        self._watching = self._group.create_task(reflector.run())
        while not self.ready or (reflector is self.reflectors[PODS] and reflector.lists == lists):
            await asyncio.sleep(_SOON)
        self.settle()

    def settle(self) -> bool:
        """Take note of all that has come and gone, and tell what follows; was there anything?

        Objects come first, because pods are read in their light.
        """
        news = bool(self._news or self._pod_news)
        while self._news:
            self._keep(*self._news.popleft())
        self.objects.settle()
        while self._pod_news:
            _, found = self._pod_news.popleft()
            if isinstance(found, Name):
                self.pods.gone(found.uid)
            else:
                self.pods.put(found)
        self._reconsider()
        return news

    def _keep(self, resource: Resource, found: Any) -> None:
        if isinstance(found, Name):
            self._found.pop((resource, found.namespace, found.name), None)
            self.objects.gone(resource, found.namespace, found.name)
        else:
            self._found[(resource, *name_of(found))] = found
            self.objects.put(resource, found)

    def _reconsider(self) -> None:
        """Do the terms still hold? If not, all is read anew."""
        said = self._said()
        if not self._known or not (self.objects.stirred or said != self._pleas):
            return
        self.objects.stirred, self._pleas = False, said
        try:
            found = self._sharing_mode()
        except InputError as error:
            _log.error("the objects contradict each other", problem=str(error))
            return
        if found != self.sharing_mode:
            self.sharing_mode = found
            self.ready = False
            self._stale.set()

    def _said(self) -> PodHints:
        """What pods say; while they are read, also what those said who have not come again yet."""
        sharing = self.pods.sharing
        said = PodHints(bool(self.pods.koordinator), bool(sharing), any(sharing.values()))
        return said if self._complete[PODS].is_set() else self._pleas.and_also(said)

    def _sharing_mode(self) -> SharingMode:
        return sharing_mode(self._configuration, self._policy, self._manifests(), self._pleas)

    def _manifests(self) -> Iterable[Manifest]:
        for (resource, _, _), found in self._found.items():
            if resource.kind not in BEAR_ON_TERMS:
                continue
            try:
                manifest = manifest_of(resource, found)
            except InputError:
                continue
            if manifest is not None:
                yield manifest

    def _reflect(self, resource: Resource, shape: type[Any]) -> Reflector[Any]:
        news = self._pod_news if resource == PODS else self._news
        inbox = _Inbox(resource, news, self._wake, self._complete[resource])
        reflector = Reflector(self._client, resource, shape, inbox)
        self.reflectors[resource] = reflector
        return reflector
