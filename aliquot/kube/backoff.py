"""How long to wait before the next attempt: longer each time, and never all at the same moment."""

import random

_SHORTEST = 0.2
_LONGEST = 30.0


class Backoff:
    """Pauses that double from 0.2 s to 30 s, each shortened at random by up to a half."""

    def __init__(self) -> None:
        self._next = _SHORTEST

    def pause(self, at_least: float | None = None) -> float:
        """How many seconds to wait now."""
        seconds = self._next * random.uniform(0.5, 1.0)
        self._next = min(_LONGEST, 2 * self._next)
        return max(seconds, at_least or 0.0)

    def reset(self) -> None:
        """All is well: the next pause is a short one."""
        self._next = _SHORTEST
