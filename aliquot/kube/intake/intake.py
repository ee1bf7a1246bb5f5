"""The intake: watches every kind, and keeps the objects in a mirror.

First all objects but pods are listed, because they decide the sharing mode, by which pods are read;
then pods. When the sharing mode changes, a new mirror replaces the old one and pods are listed
again. What the watches report is queued until `settle` is called: the mirror must never change
during a cycle of the engine.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any

import structlog

from aliquot.dialects.configuration import (
    Configuration,
    default_constraints,
    system_namespaces,
    topology_levels,
)
from aliquot.dialects.core.manifest import VOLCANO_JOBS, Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.policy import special_quotas
from aliquot.errors import InputError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import (
    BUDGETS,
    CLAIMS,
    CUSTOM,
    JOBS,
    NAMESPACES,
    NODES,
    OWNERS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SERVICES,
    STORAGE,
    VOLUMES,
    Resource,
)
from aliquot.kube.exchange.shown_volumes import ShownVolumes
from aliquot.kube.intake.eviction_pause import PauseSwitch
from aliquot.kube.intake.feed import Feed
from aliquot.kube.intake.objects import SHARING_MODE_KINDS, Objects, manifest_of, name_of, shape_of
from aliquot.kube.intake.pods import Pods
from aliquot.kube.intake.sharing_mode import PodHints, SharingMode, sharing_mode
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector
from aliquot.mirror.mirror import Mirror

_log = structlog.get_logger()

WATCHED: tuple[Resource, ...] = (
    *(NODES, NAMESPACES, RESOURCE_QUOTAS, PRIORITY_CLASSES, BUDGETS, CLAIMS, VOLUMES),
    *STORAGE,
    *(each for each in CUSTOM.values() if each.group != VOLCANO_JOBS),
    *JOBS,
)
"""All kinds but pods that every configuration needs."""

_FOR_DEFAULT_SPREAD = (SERVICES, *OWNERS)
"""The kinds that only a configuration with `placement.defaultConstraints` needs."""

_WRITTEN = (PODS, CLAIMS, VOLUMES)
"""The kinds that a former leader may have written to bind pods: they are listed again before
leadership is taken over."""
_POLL_SECONDS = 0.01
"""How often `refresh` looks whether the lists are complete: small beside the time of a list."""


@dataclass(slots=True)
class _Inbox:
    """The listener of one kind's reflector: queues what it reports."""

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
    """The objects of a cluster, as watched.

    The engine's events that follow from changes go to `feed`; `wake` is called when there is
    something to settle. `namespace` is the one that Aliquot runs in, where evictions are paused.
    Pods are those of `scheduler_names`, or of the configuration's profiles.
    """

    def __init__(
        self,
        client: Client,
        configuration: Configuration,
        policy: str | None,
        wake: Callable[[], None],
        namespace: str = "",
        feed: Feed | None = None,
        scheduler_names: Container[str] | None = None,
    ) -> None:
        self.feed = feed or Feed(wake)
        self.pause_switch = PauseSwitch(namespace, self.feed.send)
        named = frozenset(each.scheduler_name for each in configuration.profiles)
        self.scheduler_names: Container[str] = scheduler_names or named
        self.pod_listeners: list[Callable[[PodWire], None]] = []
        """Called with each pod as the watch shows it, before it is applied."""
        self.shown_volumes = ShownVolumes()
        """Claims, volumes and nodes, for the volume binder."""
        self.reflectors: dict[Resource, Reflector[Any]] = {}
        self.ready = False
        """Has everything been listed, pods by the current sharing mode?"""
        self._client = client
        self._configuration = configuration
        self._policy = policy
        self._wake = wake
        self._watching: dict[Resource, asyncio.Task[None]] = {}
        self._list_begun: dict[Resource, float] = {}
        """When the last list of each kind was begun: what was written before is in it."""
        self._bodies: dict[tuple[Resource, str, str], Any] = {}
        """All objects but pods, as decoded, for the next mirror."""
        self._news: deque[tuple[Resource, Any]] = deque()
        self._pod_news: deque[tuple[Resource, Any]] = deque()
        self._objects_read = False
        """Have all objects but pods been listed, so that the sharing mode is known?"""
        self._default_constraints = default_constraints(configuration)
        more = _FOR_DEFAULT_SPREAD if self._default_constraints else ()
        self._watched = (*WATCHED, *more)
        self._complete = {each: asyncio.Event() for each in (*self._watched, PODS)}
        self._mode_changed = asyncio.Event()
        self._hints = PodHints()
        self.sharing_mode = sharing_mode(configuration, policy, (), self._hints)
        self._build()

    def _build(self) -> None:
        """Make a new mirror for the current sharing mode, with all objects but pods."""
        special = special_quotas(self.sharing_mode.policy)
        self.mirror = Mirror(
            *(self.feed.send, self.sharing_mode.cards, special),
            live=True,
            system=system_namespaces(self._configuration),
            default_constraints=self._default_constraints,
            topology=topology_levels(self._configuration),
        )
        self.objects = Objects(self.mirror)
        self.pods = Pods(self.mirror, self.scheduler_names)
        for (resource, _, _), found in self._bodies.items():
            self.objects.put(resource, found)
        self.objects.settle()

    @property
    def missing(self) -> list[str]:
        """The kinds that have not been listed yet."""
        return [each.full_name for each, event in self._complete.items() if not event.is_set()]

    @property
    def read_since(self) -> float:
        """When the last lists of pods, and of what is bound with them, were begun."""
        return min(self._list_begun.get(each, 0.0) for each in _WRITTEN)

    async def run(self) -> None:
        """List and watch until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for resource in self._watched:
                self._follow(self._reflect(resource, shape_of(resource)))
            for resource in self._watched:
                await self._complete[resource].wait()
            self.settle()
            self.sharing_mode, self._objects_read = self._sharing_mode(), True
            while True:
                await self._follow_pods()

    async def _follow_pods(self) -> None:
        """List and watch pods until the sharing mode changes."""
        why = self.sharing_mode.why
        _log.info("the cluster is shared", policy=self.sharing_mode.policy, because=why)
        self._mode_changed.clear()
        self._complete[PODS].clear()
        self._pod_news = deque()
        self._build()
        self._follow(self._reflect(PODS, PodWire))
        await self._complete[PODS].wait()
        self.settle()
        if not self._mode_changed.is_set():
            self.ready = True
            self._wake()
            await self._mode_changed.wait()
        self._watching[PODS].cancel()

    def _follow(self, reflector: Reflector[Any]) -> None:
        self._list_begun[reflector.resource] = time.monotonic()
        self._watching[reflector.resource] = self._group.create_task(reflector.run())

    async def refresh(self) -> None:
        """List pods, claims and volumes again, so that all that was written before is known."""
        lists = {}
        for resource in _WRITTEN:
            reflector = self.reflectors[resource]
            lists[reflector] = reflector.lists
            self._watching[resource].cancel()
            reflector.list_again()
            self._follow(reflector)
        while not self.ready or any(
            reflector is self.reflectors[reflector.resource] and reflector.lists == before
            for reflector, before in lists.items()
        ):
            await asyncio.sleep(_POLL_SECONDS)
        self.settle()

    @property
    def queued(self) -> int:
        """How many changes wait to be applied."""
        return len(self._news) + len(self._pod_news)

    def settle(self, most: int | None = None) -> bool:
        """Apply the queued changes to the mirror; returns whether there were any.

        Objects come before pods, which are read by them; of pods, at most so many.
        """
        news = bool(self.queued)
        while self._news:
            self._apply(*self._news.popleft())
        self.objects.settle()
        for _ in range(min(len(self._pod_news), most or len(self._pod_news))):
            _, found = self._pod_news.popleft()
            if isinstance(found, Name):
                self.pods.gone(found.uid)
            else:
                for listener in self.pod_listeners:
                    listener(found)
                self.pods.put(found)
        if not self._pod_news:
            self._update_sharing_mode()
        return news

    def _apply(self, resource: Resource, found: Any) -> None:
        if resource == NAMESPACES:
            self._note_pause(found)
        self._note_volume(resource, found)
        if isinstance(found, Name):
            self._bodies.pop((resource, found.namespace, found.name), None)
            self.objects.gone(resource, found.namespace, found.name)
        else:
            self._bodies[(resource, *name_of(found))] = found
            self.objects.put(resource, found)

    def _note_volume(self, resource: Resource, found: Any) -> None:
        """A claim, a volume or a node may have changed, as the volume binder sees them."""
        shown = self.shown_volumes
        if resource == NODES:
            if isinstance(found, Name):
                shown.nodes.pop(found.name, None)
            else:
                shown.nodes[found.metadata.name] = found.metadata.labels or {}
        elif resource in (CLAIMS, VOLUMES):
            if isinstance(found, Name):
                shown.gone(resource, found.namespace, found.name)
            else:
                shown.put(resource, found)

    def _note_pause(self, found: Any) -> None:
        """Evictions may have been paused or resumed: the namespace of Aliquot says so."""
        if isinstance(found, Name):
            self.pause_switch.put(found.name, None)
        else:
            self.pause_switch.put(name_of(found)[1], found)

    def _update_sharing_mode(self) -> None:
        """If the sharing mode has changed, have pods listed again."""
        hints = self._pod_hints()
        if not self._objects_read or not (self.objects.dirty or hints != self._hints):
            return
        self.objects.dirty, self._hints = False, hints
        try:
            found = self._sharing_mode()
        except InputError as error:
            _log.error("the objects contradict each other", problem=str(error))
            return
        if found != self.sharing_mode:
            self.sharing_mode = found
            self.ready = False
            self._mode_changed.set()

    def _pod_hints(self) -> PodHints:
        """The hints of all pods; during a list, also those of pods not listed again yet."""
        sharing = self.pods.sharing
        hints = PodHints(bool(sharing), any(sharing.values()))
        return hints if self._complete[PODS].is_set() else self._hints.and_also(hints)

    def _sharing_mode(self) -> SharingMode:
        return sharing_mode(self._configuration, self._policy, self._manifests(), self._hints)

    def _manifests(self) -> Iterable[Manifest]:
        for (resource, _, _), found in self._bodies.items():
            if resource.kind not in SHARING_MODE_KINDS:
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
