"""How commands that run until they are stopped run, stop, and fail."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from aliquot.errors import AliquotError


def serve(work: Coroutine[Any, Any, None]) -> None:
    """Run this to its end; of several things that go wrong at once, the first is told."""
    try:
        asyncio.run(work)
    except* AliquotError as group:
        raise _first(group) from None
    except* OSError as group:
        raise AliquotError(str(_first(group))) from None


def stopping() -> asyncio.Event:
    """Set when the process is asked to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
