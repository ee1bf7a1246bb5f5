"""The side thread: what must go on while the main loop is busy deciding.

A decision may take the main loop seconds, in which it renews no Lease and answers no probe. So that
work has a thread and an event loop of its own. Nothing in it may touch the engine or wait for the
main loop. If any of it fails, all of it ends, and the main loop is told: a control plane without
its election or its probes must not go on as if nothing had happened.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import structlog

Work = Callable[[], Awaitable[None]]
"""Called in the side thread, so that whatever it makes belongs to the loop there."""

_PATIENCE = 10.0
"""Seconds for everything to end in, such as a Lease to be given back."""
_log = structlog.get_logger(__name__)


class BackgroundLoop:
    """Runs work in a thread of its own, from entering to leaving `async with Side(...)`."""

    def __init__(self, *work: Work) -> None:
        self._work = work
        self._main = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._main.create_future()
        """Done when the thread has ended, with its error if it failed."""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        threading.Thread(target=self._run, name="side", daemon=True).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(RuntimeError):  # its loop has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        done, _ = await asyncio.wait([self._ended], timeout=_PATIENCE)
        if not done:
            _log.error("the side thread does not end", seconds=_PATIENCE)
        elif error is None:
            self._ended.result()

    async def failed(self) -> None:
        """Wait until the side thread fails, and raise what it failed with."""
        await asyncio.shield(self._ended)

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._all())
        except BaseException as error:
            failure = _first(error)
        with contextlib.suppress(RuntimeError):  # the main loop is gone: nobody to tell
            self._main.call_soon_threadsafe(self._end, failure)

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(work)) for work in self._work]
            await self._stop.wait()
            for task in tasks:
                task.cancel()

    def _end(self, failure: BaseException | None) -> None:
        if failure is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(failure)
            self._ended.exception()  # raised by `failed` or on leaving, whichever comes first


async def _awaited(work: Work) -> None:
    await work()


def _first(error: BaseException) -> BaseException:
    """What went wrong first; the rest is what it led to."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
