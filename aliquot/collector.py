"""Settings of Python's garbage collector for this program.

The engine's state is large, long-lived and free of reference cycles: with default settings the
collector takes a third of the time and frees nothing. A module of its own because commands,
benchmarks and the control plane, which share no other layer, all need it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 2_500
"""How many new objects bring about a collection, where Python has 700 or 2,000: it looks at each,
up to 1.3 us, and nothing else runs meanwhile. 40,000 took up to 50 ms, and 10,000 up to 13: of 200
pods a second, each such pause delays two. All objects are looked at as often, whatever this is."""
_SMALL_COLLECTIONS, _LARGER_COLLECTIONS = 3, 16_000
"""After how many collections of new objects come those that are left of them, and after how many of
these all objects. What is left of 50 took 44 ms to look at; each object is looked at as often."""


def tune_collector() -> None:
    """Exempt all existing objects from collection, and collect new ones rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _SMALL_COLLECTIONS, _LARGER_COLLECTIONS)


@contextmanager
def paused_collector(tidy: bool = True) -> Iterator[None]:
    """Pause collection while caches fill; then exempt what they hold from collection.

    If the block fails, nothing is exempted. In any case the collector is enabled again if it was.
    Without `tidy`, garbage is exempted as well: for a process that answers once and ends.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        if tidy:
            gc.collect()
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
