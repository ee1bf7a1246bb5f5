"""The background loop: an event loop in a thread of its own, named `side`.

A cycle may keep the main loop busy for seconds, in which it could renew no Lease and answer no
probe. So the election and the probes run here. They must never touch the engine or wait for the
main loop. If one of them fails, all of them end, and the main loop ends with the same error: a
control plane without its election or its probes must not go on.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import structlog

Work = Callable[[], Awaitable[None]]
"""Called in the background thread, so that locks and sockets belong to its loop."""

_PATIENCE = 10.0
"""Seconds for all work to end: giving the Lease back takes at most half its deadline, 5 s."""
_log = structlog.get_logger(__name__)


class BackgroundLoop:
    """Runs work in a thread of its own, for as long as `async with BackgroundLoop(...)` lasts."""

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
        """Wait until the background thread fails, and raise its error."""
        await asyncio.shield(self._ended)

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._all())
        except BaseException as error:
            failure = _first(error)
        with contextlib.suppress(RuntimeError):  # the main loop has ended already
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
    """The first error of a group; the others follow from it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
