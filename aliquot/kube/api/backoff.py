"""How long to wait before the next attempt: longer each time, and never all at the same moment."""

import asyncio
import random
from collections.abc import Callable

_SHORTEST = 0.2
_LONGEST = 30.0
_MOST_DOUBLINGS = 16


def pause(tries: int, shortest: float = _SHORTEST, longest: float = _LONGEST) -> float:
    """After so many attempts in vain: twice as long each time, shortened by up to a half."""
    whole = shortest * 2.0 ** min(tries, _MOST_DOUBLINGS)
    return min(whole, longest) * random.uniform(0.5, 1.0)


class Backoff:
    """The pauses of one that tries again and again."""

    def __init__(self) -> None:
        self._tries = 0

    def pause(self, at_least: float | None = None) -> float:
        """How many seconds to wait now."""
        self._tries += 1
        return max(pause(self._tries - 1), at_least or 0.0)

    def reset(self) -> None:
        """All is well: the next pause is a short one."""
        self._tries = 0


class Calls:
    """Calls back after a while, unless it is stopped before."""

    def __init__(self) -> None:
        self._handles: set[asyncio.TimerHandle] = set()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back after so many seconds."""

        def now() -> None:
            self._handles.discard(handle)
            call()

        handle = asyncio.get_running_loop().call_later(seconds, now)
        self._handles.add(handle)

    def stop(self) -> None:
        """Call nobody back."""
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
