"""Objects that are nested beyond all sense, read all the same.

An API server keeps objects ten times as deep as what is read here can be, and whoever may make one
could keep a whole kind from ever being read again. Nothing that matters lies so deep: it is cut.
"""

import re
from collections.abc import Callable
from typing import TypeVar

Decoded = TypeVar("Decoded")
_DEEPEST = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]', re.DOTALL)


def tolerant(decode: Callable[[bytes], Decoded]) -> Callable[[bytes], Decoded]:
    """The same decoder, but what is too deep for it is taken for null."""

    def read(said: bytes) -> Decoded:
        try:
            return decode(said)
        except RecursionError:
            return decode(shallow(said))

    return read


def shallow(text: bytes) -> bytes:
    """JSON with everything left out that is nested more than a hundred deep."""
    kept: list[bytes] = []
    depth = begun = end = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == _DEEPEST + 1:
                    begun = token.start()
            case b"}" | b"]":
                if depth == _DEEPEST + 1:
                    kept += (text[end:begun], b"null")
                    end = token.end()
                depth -= 1
    return b"".join([*kept, text[end:]])
