"""The rounds of a loop that decides: when the next begins, and the clock that it goes by.

The scheduler and the shadow wait alike: for news of the watches, for a deadline, or for a second.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

_BATCH_SECONDS = 0.003
"""How long to wait for more changes before a cycle: unnoticed by users, and enough for a burst of
watch events to arrive together."""
_SHORTEST_WAIT = 0.01
"""Seconds before a deadline is looked at again: a deadline is never a busy loop."""
LONGEST_WAIT = 1.0
"""Seconds between two rounds if nothing changes: a lost fence is seen that soon, and the beats are
far below the patience of the liveness probe."""


class Rounds:
    """Tells a loop when its next round begins."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Begin the next round soon: something has changed."""
        self._news.set()

    async def wait(self, due: int | None, now: int) -> None:
        """Wait for changes, for a deadline (in nanoseconds), or for `LONGEST_WAIT`."""
        seconds = LONGEST_WAIT
        if due is not None:
            seconds = min(max((due - now) / 1e9, _SHORTEST_WAIT), LONGEST_WAIT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
                await asyncio.sleep(_BATCH_SECONDS)
        self._news.clear()


def steady_clock() -> Callable[[], int]:
    """A clock that starts at the time of day, and does not jump when that is set.

    A jump would end waits of the engine at once, such as that for victims, and evict other pods.
    """
    offset = time.time_ns() - time.monotonic_ns()
    return lambda: offset + time.monotonic_ns()
