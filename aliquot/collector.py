"""Settings of Python's garbage collector for this program.

The engine's state is large, long-lived and free of reference cycles: with default settings the
collector takes a third of the time and frees nothing. A module of its own because commands,
benchmarks and the control plane, which share no other layer, all need it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 40_000
"""How many new objects bring about a collection, where Python has 700 or 2,000: it looks at each of
them, up to 0.7 us, and nothing else runs meanwhile; 200,000 took 0.14 s, more than probes, writes
and the Lease may wait."""


def tune_collector() -> None:
    """Exempt all existing objects from collection, and collect new ones rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 50, 1000)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause collection while caches fill; then exempt what they hold from collection.

    If the block fails, nothing is exempted. In any case the collector is enabled again if it was.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.collect()
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
