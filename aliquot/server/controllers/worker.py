"""A worker: things to look at, each once however often it was mentioned, again later on trouble."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import Generic, TypeVar

from aliquot.errors import RefusalError

logger = logging.getLogger(__name__)
_AGAIN = 0.2
_MOST = 30.0

K = TypeVar("K", bound=Hashable)


class Worker(Generic[K]):
    """Looks at one thing after the other, in the order in which they came."""

    def __init__(self, look: Callable[[K], Awaitable[float | None]]) -> None:
        """`look` tells after how many seconds to look again, if at all."""
        self._look = look
        self._due: dict[K, None] = {}
        self._later: list[tuple[float, int, K]] = []
        self._count = 0
        self._failures: dict[K, int] = {}
        self._news = asyncio.Event()

    def add(self, key: K) -> None:
        """Look at this soon."""
        self._due[key] = None
        self._news.set()

    def add_later(self, key: K, seconds: float) -> None:
        """Look at this in a while."""
        self._count += 1
        at = asyncio.get_running_loop().time() + seconds
        heapq.heappush(self._later, (at, self._count, key))
        self._news.set()

    async def run(self) -> None:
        """Work, until cancelled."""
        while True:
            now = asyncio.get_running_loop().time()
            while self._later and self._later[0][0] <= now:
                self._due[heapq.heappop(self._later)[2]] = None
            if not self._due:
                await self._rest(now)
                continue
            key = next(iter(self._due))
            del self._due[key]
            await self._look_at(key)

    async def _rest(self, now: float) -> None:
        self._news.clear()
        seconds = self._later[0][0] - now if self._later else None
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return

    async def _look_at(self, key: K) -> None:
        try:
            again = await self._look(key)
        except RefusalError as refusal:
            if refusal.code != HTTPStatus.NOT_FOUND:
                self._again(key)
        except Exception:
            logger.exception("looking at %s", key)
            self._again(key)
        else:
            self._failures.pop(key, None)
            if again is not None:
                self.add_later(key, again)

    def _again(self, key: K) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_later(key, min(_AGAIN * 2 ** min(count, 10), _MOST))
