"""The garbage collector, told what this program is like.

State is large, long-lived and free of cycles: looking through all of it again and again costs a
third of the time and finds nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def tune_collector() -> None:
    """Leave what is there alone from now on, and look rarely at the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 1000)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep the collector out while caches fill; then have it forget what has come to stay.

    What goes wrong in between leaves the collector as it was.
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
