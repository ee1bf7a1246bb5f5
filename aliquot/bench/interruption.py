"""SIGINT and SIGTERM while processes run that we started: noted on arrival, obeyed between steps.

Python raises KeyboardInterrupt between any two instructions: also between the start of a process
and the line that remembers it, or amid its end. Such a process outlives us. Here a signal is only
noted. It cancels the task of the event loop, if one runs, and `check` raises KeyboardInterrupt; so
every block that started a process is left as after an error, and ends it.

Both signals are taken even where SIGINT was ignored, as in background jobs of a shell.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_noted: list[int] = []
_cancels: list[Callable[[], object]] = []
Result = TypeVar("Result")


@contextmanager
def noted() -> Iterator[None]:
    """Note the signals that arrive in this block; KeyboardInterrupt when it is left, if any did."""
    before = {each: signal.signal(each, _note) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)
        arrived = bool(_noted)
        _noted.clear()
        if arrived:  # other errors are what it led to: processes of our group got it, too
            raise KeyboardInterrupt from None


def check() -> None:
    """Raise KeyboardInterrupt if a signal has been noted."""
    if _noted:
        raise KeyboardInterrupt


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`; a signal that is noted cancels the work."""

    async def cancellable() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        _cancels.append(partial(loop.call_soon_threadsafe, task.cancel))
        try:
            check()
            return await work
        finally:
            work.close()
            _cancels.pop()

    try:
        return asyncio.run(cancellable())
    finally:
        check()


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    for cancel in _cancels:
        cancel()
