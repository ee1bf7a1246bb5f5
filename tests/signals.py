"""SIGINT as processes find it: taken in the foreground, ignored in background jobs of a shell."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigint(ignored: bool) -> Iterator[None]:
    """Processes that are started in this block inherit it so."""
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is handler, "it was not put back"
    finally:
        signal.signal(signal.SIGINT, before)
