"""Exponential backoff with jitter: how long to wait before the next attempt.

The jitter keeps clients that failed together from trying again together.
"""

import asyncio
import random
from collections.abc import Callable

_SHORTEST = 0.2
"""Seconds: a connection that was merely dropped is made again before a person notices."""
_LONGEST = 30.0
"""Seconds: client-go's reflector waits no longer either, and a restarted server is found soon."""
_EASED = 3
"""Doublings that are left after an answer that was good: pauses of 0.8 to 1.6 s. A server that has
just started is soon asked again; one that breaks off each answer, about once a second."""
_MOST_DOUBLINGS = 16
"""Keeps the power small; 0.2 s doubled 16 times is hours, far beyond any `longest` in use."""


def pause(tries: int, shortest: float = _SHORTEST, longest: float = _LONGEST) -> float:
    """Seconds to wait after so many failures: doubled each time, shortened by up to a half."""
    whole = shortest * 2.0 ** min(tries, _MOST_DOUBLINGS)
    return min(whole, longest) * random.uniform(0.5, 1.0)


class Backoff:
    """The pauses of one loop that tries again after each failure."""

    def __init__(self, longest: float = _LONGEST) -> None:
        self._longest = longest
        self._tries = 0

    def pause(self, at_least: float | None = None) -> float:
        """Seconds to wait after one more failure; `at_least` is what a server asked for."""
        self._tries += 1
        return max(pause(self._tries - 1, longest=self._longest), at_least or 0.0)

    def ease(self) -> None:
        """The last attempt began well: the next pause is one of the shorter ones."""
        self._tries = min(self._tries, _EASED)

    def reset(self) -> None:
        """The last attempt was good: the next pause is the shortest one."""
        self._tries = 0


class Timers:
    """Callbacks that are due after a while, and can be cancelled all at once.

    No callback refers to its own handle: such a circle would stay until garbage is collected.
    """

    def __init__(self) -> None:
        self._handles: dict[int, asyncio.TimerHandle] = {}
        self._count = 0

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call `call` after so many seconds."""
        self._count += 1
        later = asyncio.get_running_loop().call_later
        self._handles[self._count] = later(seconds, self._call, self._count, call)

    def _call(self, number: int, call: Callable[[], None]) -> None:
        del self._handles[number]
        call()

    def stop(self) -> None:
        """Cancel all callbacks that are not yet due."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
