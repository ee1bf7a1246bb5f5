"""How commands that run until they are stopped hear that they are to stop."""

import asyncio
import signal


def stopping() -> asyncio.Event:
    """Set when the process is asked to stop: by Ctrl-C, or by whoever runs it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
