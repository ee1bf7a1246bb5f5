"""The live source of the page: watches a cluster as the control plane does, and writes nothing.

There is no cycle here: the engine books what the cluster shows and answers questions. The pods of
all schedulers are watched, so that nodes show everything that runs on them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import structlog

from aliquot.dashboard import story
from aliquot.dashboard.board import MOST_STORY, Board
from aliquot.dashboard.watched import Watched
from aliquot.dialects.configuration import Configuration, knobs
from aliquot.dialects.core.times import timestamp
from aliquot.engine import SECOND, Engine, Event
from aliquot.errors import AliquotError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import EVENTS, Resource
from aliquot.kube.control.rounds import Rounds, steady_clock
from aliquot.kube.intake.feed import Feed
from aliquot.kube.intake.intake import Intake
from aliquot.kube.shadow.shadow import AnyScheduler
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector
from aliquot.mirror.mirror import Mirror
from aliquot.questions import history

_log = structlog.get_logger()
_PAST_SECONDS = 5.0
"""How long the decision log may take to be read: the page waits for it."""


class _Feed(Feed):
    """Tells the page what the engine is told."""

    def __init__(self, wake: Callable[[], None], clock: Callable[[], int]) -> None:
        super().__init__(wake)
        self._clock = clock
        self.watched: Watched | None = None

    def follow(self, watched: Watched, mirror: Mirror) -> None:
        """Apply everything to the engine and the page, and from now on what changes."""
        self.connect(watched.engine, mirror)
        self.watched = watched
        mirror.replay(lambda event: watched.apply(event, self._clock()))
        watched.live = True

    def _send(self, engine: Engine, event: Event) -> None:
        super()._send(engine, event)
        if self.watched is not None:
            self.watched.apply(event, self._clock())


class _Evictions:
    """Listens to the Events about victims."""

    def __init__(
        self, note: Callable[[story.EventWire], None], forget: Callable[[str], object]
    ) -> None:
        self._note = note
        self._forget = forget

    def put(self, found: story.EventWire) -> None:
        self._note(found)

    def gone(self, name: Name) -> None:
        """Events expire; what they told stays told."""
        self._forget(name.uid)

    def synced(self, resource: Resource) -> None:
        """What happened before is part of the story."""


class Observer:
    """Watches a cluster, and holds it as the page shows it."""

    def __init__(
        self,
        client: Client,
        configuration: Configuration,
        policy: str | None,
        source: str,
        namespace: str,
    ) -> None:
        self.clock = steady_clock()
        self.watched: Watched | None = None
        """Exists once everything has been listed."""
        self._client = client
        self._namespace = namespace
        """Where the control plane runs, whose decision log is read."""
        self._past: list[story.Entry] = []
        """What the decision log has told, the oldest first."""
        self._configuration = configuration
        self._source = source
        self._rounds = Rounds()
        self._feed = _Feed(self._rounds.wake, self.clock)
        self._told: dict[str, str] = {}
        """The last moment told of each Event, by uid: one that happens again is counted."""
        self._intake = Intake(
            *(client, configuration, policy, self._rounds.wake),
            feed=self._feed,
            scheduler_names=AnyScheduler(),
        )
        self._evictions = Reflector(
            client,
            EVENTS,
            story.EventWire,
            _Evictions(self._evicted, lambda uid: self._told.pop(uid, None)),
            field_selector=f"reason={story.EVICTED}",
        )

    @property
    def notice(self) -> str:
        """What the page says while not everything has been read."""
        missing = self._intake.missing
        return f"Reading {', '.join(missing[:3])} ..." if missing else ""

    @property
    def policy(self) -> str:
        """The policy of the cluster, as its objects say it."""
        return self._intake.sharing_mode.policy

    def namespaces(self) -> list[str]:
        """The namespaces that have pods."""
        pods = self.watched.occupancy.pods.values() if self.watched is not None else ()
        return sorted({pod.namespace for pod in pods})

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        self._past = [entry async for entry in self._read_past()]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._intake.run())
            group.create_task(self._evictions.run())
            group.create_task(self._follow())

    async def _read_past(self) -> AsyncIterator[story.Entry]:
        """What was decided before the page was served; nothing where the log cannot be read."""
        try:
            async with asyncio.timeout(_PAST_SECONDS):
                log = await history.decided(self._client, self._namespace)
        except (AliquotError, TimeoutError):
            return  # evictions of the last hour are in Events, too
        for found in log:
            at = timestamp(found.get("at"), "decision", "at") or 0
            if (entry := story.decided(found, at / SECOND)) is not None:
                yield entry

    async def _follow(self) -> None:
        while True:
            await self._rounds.wait(None, self.clock())
            self._intake.settle()
            self._feed.settle()
            if not self._intake.ready or self._feed.failed:
                self.watched = self._feed.watched = None
                self._feed.disconnect()
            if self._intake.ready and self.watched is None:
                self._begin()
            self._intake.mirror.refresh_budgets()

    def _begin(self) -> None:
        engine = Engine(self.policy, knobs(self._configuration))
        board = Board(self._source, self.policy)
        watched = Watched(engine, board, self._configuration.topology)
        self._feed.follow(watched, self._intake.mirror)
        for entry in self._past[-MOST_STORY:]:
            watched.note(entry)
        self.watched = watched

    def _evicted(self, event: story.EventWire) -> None:
        uid, last = event.metadata.uid or "", event.last_timestamp or ""
        if self.watched is None or self._told.get(uid) == last:
            return
        self._told[uid] = last
        quota = self._quota_of(event)
        entry = story.eviction(event, quota)
        if entry is not None and not (self._past and entry["at"] <= self._past[-1]["at"]):
            self.watched.note(entry)

    def _quota_of(self, event: story.EventWire) -> str | None:
        assert self.watched is not None
        about = event.involved_object
        found = self.watched.quota_of(f"{about.namespace}/{about.name}")
        if found is not None:
            return found
        return self._intake.mirror.quota_index.find_quota(None, about.namespace, None)
