"""The writer: sends writes to the API server by urgency, one at a time for each object.

Only the leader may write, so the fence is asked before each write. A write that has not been sent
can be replaced by a newer one of the same operation on the same object, and is dropped when
leadership is lost. One that may be out of date in a moment can be kept for that moment: then only
the last of several is sent, or none. A write is retried with backoff if the server did not answer,
was busy, or reported a conflict; any other refusal is for the caller to handle in its `run`.

Of equally urgent writes, operations take turns: a binding does not wait for a thousand evictions.
"""

import asyncio
import heapq
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from http import HTTPStatus

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.backoff import Timers, pause

WRITE_SECONDS = 4.0
"""The timeout of a write: below the 5 s between a leader's deadline and the end of its Lease, so
that no write of a former leader arrives after the next one has begun."""

_RETRIABLE = (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
_WARN_AFTER = 3
"""Retries before a warning: about a second, so that a short failure is not logged."""
_log = structlog.get_logger()

Observer = Callable[[str, str, float], None]
"""Called after each write with its operation, its result and its duration in seconds."""


class Urgency(IntEnum):
    """The order of writes, most urgent first."""

    DECISION = 0
    """Bindings and evictions."""
    NOMINATION = 1
    """A pod's nominated node."""
    CONDITION = 2
    """Why a pod waits."""
    STATUS = 3
    """Statuses and annotations of objects, labels of pods."""
    EVENT = 4


_MOST_AT_ONCE = {Urgency.STATUS: 16, Urgency.EVENT: 4}
"""How many may be under way of what nothing waits for: it must leave the server, and connections,
free for decisions, and 32 answers at one moment take the main loop some 30 ms. That is half of the
connections for statuses and labels, an eighth for events; some hundreds a second at least."""


@dataclass(slots=True)
class Write:
    """One write to the API server."""

    about: str
    """The object: writes to one object are sent one after the other."""
    operation: str
    """Such as `bind`; a newer write of the same operation to the same object replaces this one."""
    urgency: Urgency
    run: Callable[[], Awaitable[None]]
    delay: float = 0.0
    """Seconds to keep it; a newer one in its place is sent when this one would have been."""
    tries: int = 0
    """How often it has failed."""


@dataclass(slots=True)
class _Lane:
    """The writes to one object: one at a time."""

    waiting: deque[Write] = field(default_factory=deque)
    busy: bool = False
    withdrawn: set[str] = field(default_factory=set)
    """Operations that were withdrawn while under way: they are not retried."""


class Writer:
    """Queues writes and sends them, as long as `fence` allows it."""

    def __init__(
        self, fence: Callable[[], bool], at_once: int = 32, observer: Observer | None = None
    ) -> None:
        self._fence = fence
        self._at_once = at_once
        self._observer = observer
        self._lanes: dict[str, _Lane] = {}
        self._due: list[tuple[int, int, int, str]] = []
        self._turns = _Turns()
        self._count = 0
        self._idle_workers: deque[asyncio.Future[None]] = deque()
        self._waiting = 0
        self._under_way = 0
        self._by_urgency: Counter[int] = Counter()
        """How many writes of each urgency are under way."""
        self._later: dict[tuple[str, str], _Later] = {}
        """Writes that are kept for a while, or retried after a backoff, unless replaced by then."""
        self._timers = Timers()
        self._generation = 0
        """Counts `drop_all`: a write that was sent before is not retried after."""
        self.fenced = False
        """Has the fence kept back a write since the last `drop_all`?"""

    @property
    def waiting(self) -> int:
        """How many writes are due and have not been sent yet."""
        return self._waiting

    @property
    def idle(self) -> bool:
        """Is no write waiting, under way, or due later?"""
        return not self._waiting and not self._under_way and not self._later

    def add(self, write: Write) -> None:
        """Queue a write, or keep it for its delay first."""
        lane = self._lanes.setdefault(write.about, _Lane())
        for index, each in enumerate(lane.waiting):
            if each.operation == write.operation:
                lane.waiting[index] = write
                return
        if write.delay:
            self._keep(write, write.delay)
            if not lane.waiting and not lane.busy:
                del self._lanes[write.about]
            return
        self._later.pop((write.about, write.operation), None)
        others = min((each.urgency for each in lane.waiting), default=None)
        lane.waiting.append(write)
        self._waiting += 1
        if not lane.busy and (others is None or write.urgency < others):
            self._enqueue(lane, write.about)

    def withdraw(self, about: str, operation: str) -> None:
        """Drop the write of this operation to this object, unless it has been sent."""
        self._later.pop((about, operation), None)
        lane = self._lanes.get(about)
        if lane is not None and lane.busy:
            lane.withdrawn.add(operation)
        waiting = lane.waiting if lane is not None else ()
        kept = [each for each in waiting if each.operation != operation]
        if lane is not None and len(kept) < len(lane.waiting):
            self._waiting -= len(lane.waiting) - len(kept)
            lane.waiting = deque(kept)
            if not lane.busy:
                self._continue(lane, about)

    def drop_all(self) -> None:
        """Drop all writes that wait or are due later."""
        lanes, self._lanes, self._due, self._waiting = self._lanes, {}, [], 0
        self._later.clear()
        self._generation += 1
        self.fenced = False
        self._timers.stop()
        for about, lane in lanes.items():
            if lane.busy:
                lane.waiting.clear()
                self._lanes[about] = lane

    async def run(self) -> None:
        """Send writes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._work())

    async def stop(self) -> None:
        """Send nothing more, and wait for the writes under way, at most for their timeout."""
        self._fence = _never
        self.drop_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(WRITE_SECONDS):
                while self._under_way:
                    await asyncio.sleep(0.005)

    def _enqueue(self, lane: _Lane, about: str) -> None:
        """Queue a lane; its first write is as urgent as the most urgent one behind it."""
        self._count += 1
        urgency = min(each.urgency for each in lane.waiting)
        turn = self._turns.of(urgency, lane.waiting[0].operation)
        heapq.heappush(self._due, (urgency, turn, self._count, about))
        self._wake_worker()

    def _wake_worker(self) -> None:
        while self._idle_workers:
            worker = self._idle_workers.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    async def _work(self) -> None:
        while True:
            write = await self._next()
            self._under_way += 1
            self._by_urgency[write.urgency] += 1
            try:
                await self._send(write)
            finally:
                self._under_way -= 1
                self._by_urgency[write.urgency] -= 1
                self._done(write.about)

    async def _next(self) -> Write:
        while True:
            while self._due and self._may_send(self._due[0][0]):
                urgency, turn, _, about = heapq.heappop(self._due)
                self._turns.took(urgency, turn)
                lane = self._lanes.get(about)
                if lane is not None and lane.waiting and not lane.busy:
                    lane.busy = True
                    self._waiting -= 1
                    return lane.waiting.popleft()
            worker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_workers.append(worker)
            await worker

    def _may_send(self, urgency: int) -> bool:
        """May one more write of this urgency, the most urgent one that is due, be under way?"""
        return self._by_urgency[urgency] < _MOST_AT_ONCE.get(Urgency(urgency), self._at_once)

    def _done(self, about: str) -> None:
        lane = self._lanes[about]
        lane.busy = False
        lane.withdrawn.clear()
        self._continue(lane, about)

    def _continue(self, lane: _Lane, about: str) -> None:
        if lane.waiting:
            self._enqueue(lane, about)
        else:
            del self._lanes[about]

    async def _send(self, write: Write) -> None:
        if not self._fence():
            self.fenced = True
            return
        began, generation = time.perf_counter(), self._generation
        result = "done"
        try:
            await write.run()
        except (ApiError, UnreachableError) as error:
            result = "refused"
            if is_retriable(error):
                result = "put off"
                if generation == self._generation:
                    self._retry(write, error)
            else:
                _log.warning(
                    "refused", write=write.operation, about=write.about, problem=str(error)
                )
        except Exception:
            result = "failed"
            _log.exception("a write failed", write=write.operation, about=write.about)
        if self._observer is not None:
            self._observer(write.operation, result, time.perf_counter() - began)

    def _retry(self, write: Write, error: ApiError | UnreachableError) -> None:
        """Queue a write again after a backoff, unless a newer one replaces it by then."""
        if write.tries == _WARN_AFTER:
            _log.warning("still not written", write=write.operation, problem=str(error))
        asked = error.retry_after if isinstance(error, ApiError) else None
        write.tries += 1
        lane = self._lanes.get(write.about)
        newer = (write.about, write.operation) in self._later
        if newer or (
            lane is not None
            and (
                write.operation in lane.withdrawn
                or any(each.operation == write.operation for each in lane.waiting)
            )
        ):
            return
        write.delay = 0.0
        self._keep(write, max(pause(write.tries - 1), asked or 0.0))

    def _keep(self, write: Write, seconds: float) -> None:
        """Queue a write later; one that is kept already is replaced, and its time stays."""
        key = write.about, write.operation
        kept = self._later.get(key)
        if kept is not None:
            kept.write = write
            return
        kept = self._later[key] = _Later(write)

        def due() -> None:
            if self._later.get(key) is kept:
                del self._later[key]
                kept.write.delay = 0.0
                self.add(kept.write)

        self._timers.after(seconds, due)


@dataclass(slots=True)
class _Later:
    """A write that is due later."""

    write: Write


class _Turns:
    """Whose turn it is: of writes of one urgency, operations share alike, each in its own order."""

    def __init__(self) -> None:
        self._now: dict[int, int] = {}
        """By urgency: the turn that was taken last."""
        self._last: dict[tuple[int, str], int] = {}
        """By urgency and operation: the last turn that was given."""

    def of(self, urgency: int, operation: str) -> int:
        """The turn of one more write."""
        last = self._last.get((urgency, operation), 0)
        turn = self._last[urgency, operation] = max(last + 1, self._now.get(urgency, 0))
        return turn

    def took(self, urgency: int, turn: int) -> None:
        """A write was taken at its turn."""
        self._now[urgency] = max(turn, self._now.get(urgency, 0))


def _never() -> bool:
    return False


def is_retriable(error: ApiError | UnreachableError) -> bool:
    """May the same write succeed later?"""
    if isinstance(error, UnreachableError):
        return True
    return error.code in _RETRIABLE or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
