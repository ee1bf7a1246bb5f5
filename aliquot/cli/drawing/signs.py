"""The signs of tables and bars, and ASCII in their place where the terminal has no UTF-8.

Python writes UTF-8 even in the locale C, which a terminal that was set up for it does not show. So
the locale decides, where it names an encoding; and the encoding of stdout, where it is another one.
Each sign has one ASCII character, so that columns stay where they are.
"""

import os
import sys
from collections.abc import Mapping
from typing import IO, TextIO, cast

from rich.console import Console

_ASCII = str.maketrans("█▓▒░▪·∞…", "#=!-o.-~")
"""`-` stands for idle in a bar and for no bound in a column: both are nothing that is used."""
_COERCED = "C.UTF-8"
"""What Python sets LC_CTYPE to when LANG is C, or nothing is set (PEP 538)."""


def console(soft_wrap: bool = False) -> Console:
    """A console on stdout, in ASCII where it must be."""
    file = cast("IO[str]", _AsciiStream(sys.stdout)) if needs_ascii(sys.stdout) else None
    return Console(file=file, highlight=False, soft_wrap=soft_wrap)


def for_stdout(text: str) -> str:
    """The text with signs that stdout can show."""
    return text.translate(_ASCII) if needs_ascii(sys.stdout) else text


def needs_ascii(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Does the stream, or the terminal behind it, show nothing but ASCII for sure?"""
    if not _is_utf8(getattr(stream, "encoding", None) or "utf-8"):
        return True
    locale = _locale(environment)
    return bool(locale) and not _is_utf8(locale)


def _locale(environment: Mapping[str, str]) -> str:
    """The locale of the user's characters, as far as the user and not Python has set it."""
    every, characters, language = (
        environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")
    )
    if characters == _COERCED and language:
        characters = ""
    return every or characters or language


def _is_utf8(encoding: str) -> bool:
    return "utf8" in encoding.lower().replace("-", "").replace("_", "")


class _AsciiStream:
    """A stream that writes each sign in ASCII."""

    encoding = "ascii"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text with ASCII signs."""
        return self._stream.write(text.translate(_ASCII))

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Is the stream a terminal?"""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream, from which rich reads the width of a terminal."""
        return self._stream.fileno()
