"""The garbage collector while caches fill.

Tens of thousands of objects arrive at once and stay. Meanwhile the collector would look through all
of them again and again, which takes longer than decoding them; afterwards it need never look again.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def filling() -> Iterator[None]:
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
