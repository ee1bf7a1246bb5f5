"""What is to be written: in order of urgency, in order for each object, so many at once.

A write is a promise to the cluster, so nobody makes one who does not lead: the fence is asked
before each. What has not been sent can be replaced by a newer word about the same thing, and is
dropped when leadership is lost. What the server does not answer, puts off, or could not do because
of somebody else's write is tried again; other refusals are for whoever writes to deal with.
"""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.backoff import Timers, pause

SECONDS = 4.0
"""How long a decision may be under way: less than others wait before they take over."""

_CONFLICT, _MANY = 409, 429
_WORTH_A_WORD = 3
_log = structlog.get_logger()

Observer = Callable[[str, str, float], None]
"""Told of each write: what it was, how it went, how long it took."""


class Urgency(IntEnum):
    """Whose turn comes first."""

    DECISION = 0
    """Pods start, and make way."""
    PLACE = 1
    """Room is held for a pod, or no longer."""
    REASON = 2
    """Why a pod waits."""
    STATUS = 3
    """Figures in objects, labels on pods."""
    EVENT = 4


@dataclass(slots=True)
class Write:
    """One thing to be written."""

    about: str
    """The object: writes about one follow each other."""
    word: str
    """What kind of write it is; a newer one of the same word about the same object replaces it."""
    urgency: Urgency
    run: Callable[[], Awaitable[None]]
    tries: int = 0
    """How often it was made in vain."""


@dataclass(slots=True)
class _Lane:
    """The writes about one object: one at a time."""

    waiting: deque[Write] = field(default_factory=deque)
    busy: bool = False
    unwanted: set[str] = field(default_factory=set)
    """Of what kinds nothing is to be tried again that is under way."""


class Writer:
    """Takes writes and makes them, as long as `fence` allows it."""

    def __init__(
        self, fence: Callable[[], bool], at_once: int = 32, observer: Observer | None = None
    ) -> None:
        self._fence = fence
        self._at_once = at_once
        self._observer = observer
        self._lanes: dict[str, _Lane] = {}
        self._due: list[tuple[int, int, str]] = []
        self._count = 0
        self._idlers: deque[asyncio.Future[None]] = deque()
        self._waiting = 0
        self._under_way = 0
        self._put_off: dict[tuple[str, str], Write] = {}
        """What is to be tried again, unless there is a newer word by then."""
        self._timers = Timers()
        self._era = 0
        """What was begun before everything was dropped is not tried again."""
        self.lapsed = False
        """Was anything not written because the fence did not allow it, since all was dropped?"""

    @property
    def waiting(self) -> int:
        """How many have not been sent yet."""
        return self._waiting

    @property
    def idle(self) -> bool:
        """Is nothing left to be written, nothing under way, and nothing to be tried again?"""
        return not self._waiting and not self._under_way and not self._put_off

    def add(self, write: Write) -> None:
        """Have something written."""
        self._put_off.pop((write.about, write.word), None)
        lane = self._lanes.setdefault(write.about, _Lane())
        for index, each in enumerate(lane.waiting):
            if each.word == write.word:
                lane.waiting[index] = write
                return
        others = min((each.urgency for each in lane.waiting), default=None)
        lane.waiting.append(write)
        self._waiting += 1
        if not lane.busy and (others is None or write.urgency < others):
            self._line_up(lane, write.about)

    def withdraw(self, about: str, word: str) -> None:
        """What was to be written about an object is no longer wanted, if it has not been sent."""
        self._put_off.pop((about, word), None)
        lane = self._lanes.get(about)
        if lane is not None and lane.busy:
            lane.unwanted.add(word)
        kept = [each for each in lane.waiting if each.word != word] if lane is not None else []
        if lane is not None and len(kept) < len(lane.waiting):
            self._waiting -= len(lane.waiting) - len(kept)
            lane.waiting = deque(kept)
            if not lane.busy:
                self._go_on(lane, about)

    def drop_all(self) -> None:
        """Make none of the writes that wait."""
        lanes, self._lanes, self._due, self._waiting = self._lanes, {}, [], 0
        self._put_off.clear()
        self._era += 1
        self.lapsed = False
        self._timers.stop()
        for about, lane in lanes.items():
            if lane.busy:
                lane.waiting.clear()
                self._lanes[about] = lane

    async def run(self) -> None:
        """Make writes for as long as this is not cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._work())

    async def stop(self) -> None:
        """Begin nothing more, and wait for what is under way, as long as a decision may take."""
        self._fence = _never
        self.drop_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                while self._under_way:
                    await asyncio.sleep(0.005)

    def _line_up(self, lane: _Lane, about: str) -> None:
        """Whoever is first in a lane is as urgent as the most urgent behind."""
        self._count += 1
        urgency = min(each.urgency for each in lane.waiting)
        heapq.heappush(self._due, (urgency, self._count, about))
        while self._idlers:
            idler = self._idlers.popleft()
            if not idler.done():
                idler.set_result(None)
                return

    async def _work(self) -> None:
        while True:
            write = await self._next()
            self._under_way += 1
            try:
                await self._make(write)
            finally:
                self._under_way -= 1
                self._done(write.about)

    async def _next(self) -> Write:
        while True:
            while self._due:
                _, _, about = heapq.heappop(self._due)
                lane = self._lanes.get(about)
                if lane is not None and lane.waiting and not lane.busy:
                    lane.busy = True
                    self._waiting -= 1
                    return lane.waiting.popleft()
            idler: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idlers.append(idler)
            await idler

    def _done(self, about: str) -> None:
        lane = self._lanes[about]
        lane.busy = False
        lane.unwanted.clear()
        self._go_on(lane, about)

    def _go_on(self, lane: _Lane, about: str) -> None:
        if lane.waiting:
            self._line_up(lane, about)
        else:
            del self._lanes[about]

    async def _make(self, write: Write) -> None:
        if not self._fence():
            self.lapsed = True
            return
        began, era = time.perf_counter(), self._era
        result = "done"
        try:
            await write.run()
        except (ApiError, UnreachableError) as error:
            result = "refused"
            if passes(error):
                result = "put off"
                if era == self._era:
                    self._try_again(write, error)
            else:
                _log.warning("refused", write=write.word, about=write.about, problem=str(error))
        except Exception:
            result = "failed"
            _log.exception("a write failed", write=write.word, about=write.about)
        if self._observer is not None:
            self._observer(write.word, result, time.perf_counter() - began)

    def _try_again(self, write: Write, error: ApiError | UnreachableError) -> None:
        """Later, unless there is a newer word on the matter by then."""
        if write.tries == _WORTH_A_WORD:
            _log.warning("still not written", write=write.word, problem=str(error))
        asked = error.retry_after if isinstance(error, ApiError) else None
        write.tries += 1
        key = (write.about, write.word)
        lane = self._lanes.get(write.about)
        newer = {each.word for each in lane.waiting} | lane.unwanted if lane is not None else set()
        if write.word in newer:
            return
        self._put_off[key] = write

        def again() -> None:
            if self._put_off.get(key) is write:
                self.add(write)

        self._timers.after(max(pause(write.tries - 1), asked or 0.0), again)


def _never() -> bool:
    return False


def passes(error: ApiError | UnreachableError) -> bool:
    """May the same write be met with another answer, later?"""
    return (
        isinstance(error, UnreachableError) or error.code in (_CONFLICT, _MANY) or error.code >= 500
    )
