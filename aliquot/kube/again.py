"""Trying again: later each time, and not all at the same moment."""

import asyncio
import random
from collections.abc import Callable

from aliquot.errors import ApiError, UnreachableError

_FIRST, _LONGEST = 0.25, 30.0


class Again:
    """Calls back after a while, unless it is stopped before."""

    def __init__(self) -> None:
        self._handles: set[asyncio.TimerHandle] = set()

    def later(
        self,
        tries: int,
        call: Callable[[], None],
        after: ApiError | UnreachableError | None = None,
    ) -> None:
        """Call back after the n-th try in vain; not before the server said that it may help."""
        asked = after.retry_after if isinstance(after, ApiError) else None
        self.after(max(pause(tries), asked or 0.0), call)

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


def pause(tries: int, first: float = _FIRST, longest: float = _LONGEST) -> float:
    """How long to wait after so many tries: twice as long each time, give or take a quarter."""
    return float(min(first * 2 ** min(tries, 16), longest) * random.uniform(0.75, 1.25))
