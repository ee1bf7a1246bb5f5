"""Frames to open pages: one encoding for all of them, and none while nothing changes.

A page that reads more slowly than frames come is cut off; it asks again, and gets everything anew.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from aliquot.dashboard.board import Frame
from aliquot.dashboard.watched import Watched

_POLL_SECONDS = 0.015
"""How soon a change is told of, where nothing was told just before: at once, to a person."""
_SHORTEST = 0.3
"""Seconds between two frames: a person sees no more than three a second."""
_COST = 25
"""A frame may take one part in so many of the time: all pages together 4% of a core."""
_CLOCK_SECONDS = 5.0
"""How often pages are told the time though nothing has changed."""
_UNSEEN_SECONDS = 1.0
"""How often a cluster that changes is looked at for the history though no page is open: its curves
and what happened stand on one line of time."""
_UNSEEN_COST = 100
"""A look that no page sees may take one part in so many of the time: 1% of a core."""
_MOST_BEHIND = 20
"""Frames that a page may be behind: ten seconds."""


class Reader:
    """One open page: the frames that it has not been sent yet."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[Frame | None] = asyncio.Queue(_MOST_BEHIND)

    def put(self, frame: Frame | None) -> None:
        """Queue a frame; None ends the page's stream."""
        if self.frames.full():
            while not self.frames.empty():
                self.frames.get_nowait()
            frame = None
        self.frames.put_nowait(frame)

    async def read(self) -> AsyncIterator[Frame]:
        """The frames as they come, until the stream ends."""
        while (frame := await self.frames.get()) is not None:
            yield frame


class Stream:
    """Looks at the cluster while pages are open, and tells them what has changed."""

    def __init__(
        self,
        watched: Callable[[], Watched | None],
        clock: Callable[[], int],
        notice: Callable[[], str],
    ) -> None:
        self._watched = watched
        self._clock = clock
        self._notice = notice
        self._readers: set[Reader] = set()
        self._of: Watched | None = None
        """The cluster that was last told of; another one is told of anew."""
        self._version = -1

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A page that has been opened: it gets everything first, as it is now."""
        reader = Reader()
        watched = self._watched()
        if watched is not None:
            if watched is not self._of or not self._readers:
                self._look(watched)
            reader.put(watched.board.whole())
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    async def run(self) -> None:
        """Tell open pages what has changed, until cancelled."""
        told = cost = 0.0
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            watched, seconds = self._watched(), time.monotonic() - told
            if watched is None or seconds < self._pause(cost) or not self._due(watched, seconds):
                continue
            told, began = time.monotonic(), time.thread_time()
            self._tell(watched)
            cost = time.thread_time() - began

    def _due(self, watched: Watched, seconds: float) -> bool:
        news = watched is not self._of or watched.version != self._version
        return seconds > _CLOCK_SECONDS or news or (watched.is_asking and bool(self._readers))

    def _pause(self, cost: float) -> float:
        """Seconds until the next look, after one that took so much processor time."""
        if self._readers:
            return max(_SHORTEST, cost * _COST)
        return max(_UNSEEN_SECONDS, cost * _UNSEEN_COST)

    def _tell(self, watched: Watched) -> None:
        anew = watched is not self._of
        frame = self._look(watched)
        if anew:
            frame = watched.board.whole()
        for reader in list(self._readers):
            reader.put(frame)

    def _look(self, watched: Watched) -> Frame:
        self._of, self._version = watched, watched.version
        return watched.look(self._clock(), self._notice())
