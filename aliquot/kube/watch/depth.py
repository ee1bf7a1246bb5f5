"""What the JSON decoder cannot read: objects nested too deep, and bytes that are no text.

An API server accepts objects nested some ten times as deep as msgspec decodes. A user who creates
one of them must not keep a whole kind from being listed: what lies too deep, where no field of any
API is, is replaced by null. It works on the text, before `decoding` makes objects of it. Bytes that
are not UTF-8, which a broken connection may bring, are malformed JSON like any other.
"""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

Decoded = TypeVar("Decoded")
_DEEPEST = 100
"""Levels: the fields that are read lie some fifteen deep, the decoder gives up near a thousand."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]', re.DOTALL)


def tolerant(decode: Callable[[bytes], Decoded]) -> Callable[[bytes], Decoded]:
    """The same decoder, except that what is nested too deep for it is read as null.

    Bytes that are not UTF-8 are a `msgspec.DecodeError`, wherever they are. The decoder itself
    takes a spoiled key for a field that it does not know: a bound pod would look like a free one.
    """

    def read(text: bytes) -> Decoded:
        _check(text)
        try:
            return decode(text)
        except RecursionError:
            return decode(shallow(text))

    return read


def _check(text: bytes) -> None:
    if not text.isascii():  # which is far faster than to decode it, and most of what servers send
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from None


def shallow(text: bytes) -> bytes:
    """JSON with null in place of everything nested more than `_DEEPEST` levels deep."""
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
