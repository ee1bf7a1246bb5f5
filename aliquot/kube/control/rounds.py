"""The rounds of a loop that decides: when the next begins, and the clock that it goes by.

The scheduler and the shadow wait alike: for news of the watches, for a deadline, or for a second.
And within a round, they let other tasks have their turn whenever theirs has lasted for a while.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

_LONGEST_PAUSE = 0.003
"""How long to wait for more changes before a round at most: unnoticed by users, and enough for a
burst of watch events to arrive together."""
_SHORTEST_WAIT = 0.01
"""Seconds before a deadline is looked at again: a deadline is never a busy loop."""
LONGEST_WAIT = 1.0
"""Seconds between two rounds if nothing changes: a lost fence is seen that soon, and the beats are
far below the patience of the liveness probe."""
_LONGEST_TURN = 0.005
"""Seconds of a turn after which other tasks have theirs. A cycle of 20 ms cannot be parted; what is
done before and after it, and answers to 32 writes, have turns of their own, so that all together
they stay below the 100 ms that a task may wait."""


class Rounds:
    """Tells a loop when its next round begins, and when others have their turn."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._began = 0.0
        self._turn_began = 0.0

    def wake(self) -> None:
        """Begin the next round soon: something has changed."""
        self._news.set()

    async def wait(self, due: int | None, now: int) -> None:
        """Wait for changes, for a deadline (in nanoseconds), or for `LONGEST_WAIT`.

        The first change after a quiet moment begins a round at once. While there is one after the
        other, rounds pause for as long as they take, so that more changes share one.
        """
        ended = time.monotonic()
        pause = min(ended - self._began, _LONGEST_PAUSE)
        seconds = LONGEST_WAIT
        if due is not None:
            seconds = min(max((due - now) / 1e9, _SHORTEST_WAIT), LONGEST_WAIT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
                await asyncio.sleep(max(ended + pause - time.monotonic(), 0.0))
        self._news.clear()
        self._began = self._turn_began = time.monotonic()

    async def share(self) -> None:
        """Let other tasks have their turn, if the loop's own has lasted for a while."""
        if time.monotonic() - self._turn_began >= _LONGEST_TURN:
            await asyncio.sleep(0)
            self._turn_began = time.monotonic()


def steady_clock() -> Callable[[], int]:
    """A clock that starts at the time of day, and does not jump when that is set.

    A jump would end waits of the engine at once, such as that for victims, and evict other pods.
    """
    offset = time.time_ns() - time.monotonic_ns()
    return lambda: offset + time.monotonic_ns()
