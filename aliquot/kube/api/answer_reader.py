"""Reads the answers of one HTTP/1.1 connection, as their bytes come.

HTTP itself is read by llhttp, Node's parser, which takes nothing that could be read in two ways. An
answer that it refuses, or one larger than any sound one, is a ValueError: what follows it on the
connection could be taken for another answer.
"""

from http import HTTPStatus
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_LONGEST_HEAD = 2**16
"""Bytes of a status line and headers: API servers send some 400."""
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
        self._parser = HttpResponseParser(self)
        self._read: list[Answer] = []
        """The answers that are complete: one, unless the server sends what was not asked for."""
        self._begun = self._headed = False
        self._clear()

    def _clear(self) -> None:
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._head_size = self._body_size = 0

    def feed(self, data: bytes) -> Answer | None:
        """The answer, if it is complete with these bytes."""
        more = False
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._read:
                words = f"an answer that is no sound HTTP/1.1: {error}, in {data[:80]!r}"
                raise ValueError(words) from error
            more = True
        self._head_size += len(data) if self._begun and not self._headed else 0
        if self._head_size > _LONGEST_HEAD or self._body_size > _LONGEST_BODY:
            raise ValueError(f"an answer of more than {_LONGEST_HEAD} or {_LONGEST_BODY} bytes")
        if not self._read:
            return None
        answer, more = self._read[0], more or self._begun or len(self._read) > 1
        self._read.clear()
        return answer._replace(reusable=False) if more else answer

    def end(self) -> Answer | None:
        """The answer that the end of the connection completes, if it does."""
        told = self._headers.keys() & {"content-length", "transfer-encoding"}
        return None if not self._headed or told else self._answer(reusable=False)

    def _answer(self, *, reusable: bool) -> Answer:
        status, body = self._parser.get_status_code(), b"".join(self._chunks)
        return Answer(status, self._headers, body, reusable)

    def on_message_begin(self) -> None:
        """The first byte of an answer has come."""
        self._begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come, or a trailer, which says nothing of interest."""
        if not self._headed:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers have come; an answer that names a length beyond any sound one is refused."""
        self._headed = True
        length = self._headers.get("content-length", "0")
        self._body_size = int(length) if length.isdecimal() else 0

    def on_body(self, chunk: bytes) -> None:
        """A part of the body has come."""
        self._chunks.append(chunk)
        if "content-length" not in self._headers:
            self._body_size += len(chunk)

    def on_message_complete(self) -> None:
        """An answer is complete; an interim one says only that another follows."""
        if self._parser.get_status_code() >= HTTPStatus.OK:
            self._read.append(self._answer(reusable=self._parser.should_keep_alive()))
        self._begun = self._headed = False
        self._clear()
