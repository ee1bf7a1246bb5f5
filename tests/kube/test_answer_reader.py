"""Answers of HTTP/1.1: the same ones however their bytes come, and none that is in doubt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.kube.api.answer_reader import Answer, AnswerReader

_BODIES = st.binary(max_size=40)
_HEADERS = st.dictionaries(st.sampled_from(("Date", "Retry-After", "X-Y")), st.just("a: b"))


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


@st.composite
def _answers(draw: st.DrawFn) -> tuple[bytes, Answer]:
    """An answer as it is sent, and as it is read."""
    status, headers = draw(st.sampled_from((200, 201, 409, 500))), draw(_HEADERS)
    body, closes = draw(_BODIES), draw(st.booleans())
    more = {"Connection": "Close"} if closes else {}
    if draw(st.booleans()):
        more["Content-Length"], sent = str(len(body)), body
    else:
        more["Transfer-Encoding"], sent = "chunked", b""
        cuts = sorted(draw(st.sets(st.integers(1, max(len(body), 1)))))
        parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        for part in filter(None, parts):
            sent += b"%X;x=y\r\n%s\r\n" % (len(part), part)
        sent += b"0\r\n" + draw(st.sampled_from((b"", b"Trailer: x\r\n"))) + b"\r\n"
    interim = _head(100, {}) if draw(st.booleans()) else b""
    found = {name.lower(): value for name, value in (headers | more).items()}
    return interim + _head(status, headers | more) + sent, Answer(status, found, body, not closes)


@given(st.lists(_answers(), min_size=1, max_size=3), st.data())
def test_answers_are_the_same_however_they_come(
    answers: list[tuple[bytes, Answer]], data: st.DataObject
) -> None:
    reader = AnswerReader()
    for sent, expected in answers:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(sent) - 1))))
        parts = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
        assert [reader.feed(part) for part in parts[:-1]] == [None] * (len(parts) - 1)
        assert reader.feed(parts[-1]) == expected
        if not expected.reusable:
            break


def test_an_answer_of_unknown_length_ends_with_its_connection() -> None:
    reader = AnswerReader()
    assert reader.end() is None
    assert reader.feed(_head(200, {}) + b"some") is None
    assert reader.feed(b" more") is None
    assert reader.end() == Answer(200, {}, b"some more", False)


@pytest.mark.parametrize("headers", [{"Content-Length": "5"}, {"Transfer-Encoding": "chunked"}])
def test_an_answer_that_is_cut_off_is_none(headers: dict[str, str]) -> None:
    reader = AnswerReader()
    assert reader.feed(_head(200, headers) + b"3\r\n") is None
    assert reader.end() is None


def test_a_large_answer_may_come_in_one_piece() -> None:
    reader, body = AnswerReader(), b"x" * 200_000
    for _ in range(2):
        answer = reader.feed(_head(200, {"Content-Length": "200000"}) + body)
        assert answer == Answer(200, {"content-length": "200000"}, body, True)


def test_an_answer_without_a_body() -> None:
    assert AnswerReader().feed(_head(204, {})) == Answer(204, {}, b"", True)


def test_a_connection_with_more_than_was_asked_for_is_not_used_again() -> None:
    answer = AnswerReader().feed(_head(200, {"Content-Length": "1"}) + b"ab")
    assert answer == Answer(200, {"content-length": "1"}, b"a", False)


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-server\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200\r\nno header\r\n\r\n",
        b"HTTP/1.1 200\r\nName : x\r\n\r\n",
        b"HTTP/1.1 200\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 0x2\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 9999999999\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n",
        b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000,
    ],
)
def test_what_may_be_misread_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        AnswerReader().feed(sent)
