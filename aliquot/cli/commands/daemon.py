"""Commands that run until they are stopped: `up`, `scheduler` and `webhook`.

They end on SIGINT (Ctrl-C) and SIGTERM (the kubelet), and close what they opened before they do.
What goes wrong on the way is one line on stderr, as for every other command.
"""

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from aliquot.cli.commands.choices import LogFormat, LogLevel
from aliquot.errors import AliquotError, InputError
from aliquot.kube.observe import logs


def set_up_logs(form: LogFormat | None, level: LogLevel) -> None:
    """Log to stderr; without a format, for people on a terminal and for programs elsewhere."""
    logs.set_up(form or ("console" if sys.stderr.isatty() else "json"), level)


def serve(command: str, service: AbstractAsyncContextManager[object]) -> None:
    """Enter the service, wait for a signal to stop, and leave it."""
    with _expected_errors(command):
        asyncio.run(_until_stopped(service))


async def _until_stopped(service: AbstractAsyncContextManager[object]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with service:
        await stop.wait()


@contextmanager
def _expected_errors(command: str) -> Iterator[None]:
    """Turn the first error of a group, and errors of the system, into an `AliquotError`.

    Tasks that run together fail together: the first error is the cause, the others follow from it.
    """
    try:
        yield
    except (Exception, ExceptionGroup) as error:
        first = _first(error)
        if isinstance(first, AliquotError):
            raise first from None
        if isinstance(first, OSError | sqlite3.Error):
            problem = getattr(first, "strerror", None) or str(first)
            raise InputError(command, "", problem) from None
        raise


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
