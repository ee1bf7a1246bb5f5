"""Waiting for what a server does in its own time."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    """Fail unless it holds before the time is over."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so after {seconds:.0f} s"
        time.sleep(0.02)
