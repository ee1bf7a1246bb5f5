"""The work queue of a controller: keys to reconcile, each queued once, retried with backoff.

One key is reconciled at a time, so that a controller never races with itself.
"""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import Generic, TypeVar

from aliquot.errors import RefusalError

logger = logging.getLogger(__name__)
_FIRST_RETRY = 0.2
"""Seconds; doubled before each retry. Long enough for a refused write to find the newer object."""
_LONGEST_RETRY = 30.0
"""Seconds; a cause that lasts, such as a full ResourceQuota, is noticed again within them."""

K = TypeVar("K", bound=Hashable)


class Worker(Generic[K]):
    """Reconciles one key after the other, in the order in which they were queued."""

    def __init__(self, reconcile: Callable[[K], Awaitable[float | None]]) -> None:
        """`reconcile` returns the seconds after which to reconcile the key again, or None."""
        self._reconcile = reconcile
        self._due: dict[K, None] = {}
        self._later: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._failures: dict[K, int] = {}
        self._added = asyncio.Event()

    def enqueue(self, key: K) -> None:
        """Reconcile this key."""
        self._due[key] = None
        self._added.set()

    def enqueue_after(self, key: K, seconds: float) -> None:
        """Reconcile this key after so many seconds."""
        self._sequence += 1
        at = asyncio.get_running_loop().time() + seconds
        heapq.heappush(self._later, (at, self._sequence, key))
        self._added.set()

    async def run(self) -> None:
        """Reconcile until cancelled."""
        while True:
            now = asyncio.get_running_loop().time()
            while self._later and self._later[0][0] <= now:
                self._due[heapq.heappop(self._later)[2]] = None
            if not self._due:
                await self._wait(now)
                continue
            key = next(iter(self._due))
            del self._due[key]
            await self._process(key)

    async def _wait(self, now: float) -> None:
        self._added.clear()
        seconds = self._later[0][0] - now if self._later else None
        try:
            await asyncio.wait_for(self._added.wait(), seconds)
        except TimeoutError:
            return

    async def _process(self, key: K) -> None:
        try:
            seconds = await self._reconcile(key)
        except RefusalError as refusal:
            if refusal.code == HTTPStatus.NOT_FOUND:
                self._failures.pop(key, None)
            else:
                self._retry(key)
        except Exception:
            logger.exception("looking at %s", key)
            self._retry(key)
        else:
            self._failures.pop(key, None)
            if seconds is not None:
                self.enqueue_after(key, seconds)

    def _retry(self, key: K) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        self.enqueue_after(key, min(_FIRST_RETRY * 2 ** min(count, 10), _LONGEST_RETRY))
