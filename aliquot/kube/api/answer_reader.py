"""Reads the answers of one HTTP/1.1 connection, as their bytes come.

An answer whose end cannot be told for certain is refused with a ValueError, and so is one larger
than any sound one: what follows it on the connection could be taken for another answer.
"""

from http import HTTPStatus
from typing import NamedTuple

_LONGEST_HEAD = 2**16
"""Bytes of a status line and headers, and of a line between chunks: API servers send some 400."""
_LONGEST_BODY = 2**30
"""Bytes of a body: a list of pages stays far below it, and so does one of all of 150,000 pods."""
_NO_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    """Names in small letters; of a header that is repeated, the last."""
    body: bytes
    reusable: bool
    """May another request be sent on its connection?"""


class AnswerReader:
    """Puts one answer together after the other."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._begin()

    def _begin(self) -> None:
        self._head: tuple[int, dict[str, str], bool] | None = None
        self._length: int | None = None
        """Of the body; None if it is told otherwise."""
        self._chunked = False
        self._missing = 0
        """Bytes of the chunk that have not come yet, with its line end; 0 before its size."""
        self._trailer = False
        """Has the last chunk come?"""
        self._chunks: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Answer | None:
        """The answer, if it is complete with these bytes."""
        self._received += data
        while self._head is None:
            if not self._read_head():
                return None
        if self._chunked:
            return self._answer(b"".join(self._chunks)) if self._read_chunks() else None
        if self._length is None or len(self._received) < self._length:
            _check(len(self._received), _LONGEST_BODY)
            return None
        return self._answer(self._take(self._length))

    def end(self) -> Answer | None:
        """The answer that the end of the connection completes, if it does."""
        if self._head is None or self._chunked or self._length is not None:
            return None
        return self._answer(self._take(len(self._received)))

    def _answer(self, body: bytes) -> Answer:
        assert self._head is not None
        status, headers, keeps = self._head
        self._begin()
        return Answer(status, headers, body, keeps and not self._received)

    def _take(self, length: int) -> bytes:
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def _read_head(self) -> bool:
        """Read status line and headers, if they are there; those of an interim answer are not."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            _check(len(self._received), _LONGEST_HEAD)
            return False
        first, *lines = self._take(end + 4)[:-4].decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdecimal()):
            raise ValueError(f"an answer that is not HTTP/1.1: {first[:80]!r}")
        status = int(code)
        if status >= HTTPStatus.OK:
            headers = _headers(lines)
            self._frame(status, headers)
            closes = "close" in headers.get("connection", "").lower()
            told = self._chunked or self._length is not None
            self._head = status, headers, told and not closes and version == "HTTP/1.1"
        return True

    def _frame(self, status: int, headers: dict[str, str]) -> None:
        """How the end of the body is told."""
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if status in _NO_BODY:
            self._length = 0
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise ValueError(f"an answer of unknown length: {coding[:80]!r}")
            self._chunked = True
        elif length is not None:
            self._length = _number(length, 10)

    def _read_chunks(self) -> bool:
        """Read the chunks that have come; is the last among them?"""
        while True:
            if self._missing:
                if len(self._received) < self._missing:
                    return False
                chunk = self._take(self._missing)
                if not chunk.endswith(b"\r\n"):
                    raise ValueError("a chunk that does not end")
                self._chunks.append(chunk[:-2])
                self._missing = 0
            end = self._received.find(b"\r\n")
            if end < 0:
                _check(len(self._received), _LONGEST_HEAD)
                return False
            line = self._take(end + 2)[:-2].decode("latin-1")
            if self._trailer:
                if not line:
                    return True
                continue
            size = _number(line.partition(";")[0].strip(), 16)
            self._size += size
            _check(self._size, _LONGEST_BODY)
            self._missing, self._trailer = (size + 2 if size else 0), not size


def _headers(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise ValueError(f"not a header: {line[:80]!r}")
        name, value = name.lower(), value.strip()
        if name == "content-length" and found.get(name, value) != value:
            raise ValueError("an answer of two lengths")
        found[name] = value
    return found


def _number(text: str, base: int) -> int:
    """A length as HTTP has it: digits alone."""
    digits = "0123456789abcdef"[:base]
    if not text or len(text) > 16 or text.lower().strip(digits):
        raise ValueError(f"not a length: {text[:80]!r}")
    number = int(text, base)
    _check(number, _LONGEST_BODY)
    return number


def _check(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"an answer of more than {most} bytes")
