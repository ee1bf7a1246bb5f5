"""`--watch`: a picture that is drawn anew in place, as large as the terminal, until `q` is typed.

Between two pictures keys are listened to. Where stdin is no terminal, Ctrl-C ends it.
"""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live

from aliquot.cli.drawing.signs import console as make_console

_PERIOD = 2.0
"""Seconds between two pictures: a person reads no faster, and a list of a cluster costs it work."""
_PART = 3
"""Reading takes at most a third of the time: a large cluster is listed less often."""
_QUIT = (b"q", b"Q", b"\x03", b"\x1b")

Picture = Callable[[int, int], RenderableType]
"""What is shown, for a console of this width and height."""


class _Fitted:
    """A picture that is made for the size of the console whenever it is drawn."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._picture(console.width, console.height)


def watch(read: Callable[[], Picture]) -> None:
    """Show what `read` returns, read again and again, until `q`."""
    console = make_console()
    if not console.is_terminal:
        raise click.UsageError("--watch needs a terminal; without it, -o json is for programs")
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            begun = time.monotonic()
            live.update(_Fitted(read()), refresh=True)
            took = time.monotonic() - begun
            end = time.monotonic() + max(_PERIOD, _PART * took)
            size = os.get_terminal_size(console.file.fileno())
            while (left := end - time.monotonic()) > 0:
                if pressed(min(left, 0.1)):
                    return
                now = os.get_terminal_size(console.file.fileno())
                if now != size:
                    size = now
                    live.refresh()


def _no_key(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Was a key that quits pressed, within so many seconds?"""
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)

    def pressed(seconds: float) -> bool:
        ready, _, _ = select.select([file], [], [], seconds)
        return bool(ready) and os.read(file, 1) in _QUIT

    try:
        yield pressed
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
