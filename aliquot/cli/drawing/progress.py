"""How far a long simulation is: one line on stderr, where that is a terminal, and gone at the end.

Without a terminal nothing is written: programs that read stderr find warnings there.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aliquot.dialects.core.times import span

_PATIENCE = 2.0
"""Seconds without a word: most simulations are over by then."""
_EVERY = 0.5
"""Seconds between two lines: often enough to see that it goes on."""
_MINUTE = 60 * 10**9
_HOUR = 60 * _MINUTE
_CLEAR = "\r\x1b[K"


@contextmanager
def progress(until: int | None) -> Iterator[Callable[[int], None]]:
    """What is to be told of each moment of a simulation, in nanoseconds."""
    stream, due, shown = sys.stderr, time.monotonic() + _PATIENCE, False
    goal = "" if until is None else f" of {span(until)}"

    def passed(moment: int) -> None:
        nonlocal due, shown
        if time.monotonic() < due:
            return
        due, shown = time.monotonic() + _EVERY, True
        at = span(moment - moment % (_MINUTE if moment < 2 * _HOUR else _HOUR))
        stream.write(f"{_CLEAR}simulating: at {at}{goal}; Ctrl-C to stop")
        stream.flush()

    try:
        yield passed if stream.isatty() else lambda moment: None
    finally:
        if shown:
            stream.write(_CLEAR)
            stream.flush()
