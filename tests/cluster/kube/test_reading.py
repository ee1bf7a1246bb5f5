"""What is read from a server: lines of a watch, nested objects, names, pauses, memory."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.collector import paused_collector
from aliquot.errors import UnreachableError
from aliquot.kube.api import client
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import split_lines
from aliquot.kube.watch.depth import shallow
from aliquot.kube.watch.known_names import KnownNames, Name


async def _chunks(text: bytes, ends: list[int]) -> AsyncIterator[bytes]:
    for start, end in pairwise([0, *sorted(ends), len(text)]):
        yield text[start:end]


def _lines(text: bytes, ends: list[int]) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [line async for line in split_lines(_chunks(text, ends))]

    return asyncio.run(collect())


@given(st.data())
def test_lines_are_the_same_however_chunks_end(data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from([b"a", b"bc", b"\n"])).map(b"".join))
    ends = data.draw(st.lists(st.integers(0, len(text))))
    assert _lines(text, ends) == text.split(b"\n")[:-1]


def test_a_line_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LONGEST_LINE", 10)
    assert _lines(b"0123456789\n0123456789\n", [5, 11, 16]) == [b"0123456789"] * 2
    with pytest.raises(UnreachableError, match="more than 10 bytes"):
        _lines(b"0123456789abc", [5])


VALUES = st.recursive(
    st.none() | st.text(alphabet='ab"\\[]{}é') | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a"]{'), inner),
)


@given(VALUES, st.booleans())
def test_what_is_not_deep_stays_as_it_is(value: Any, spaced: bool) -> None:
    text = json.dumps(value, indent=1 if spaced else None).encode()
    assert shallow(text) == text


@given(VALUES)
def test_what_is_deep_is_left_out(value: Any) -> None:
    def nested(inner: str, depth: int) -> str:
        return '{"a\\"[":[' * (depth // 2) + inner + "]}" * (depth // 2)

    text = json.dumps([value])
    assert shallow(nested(text, 100).encode()).decode() == nested("null", 100)
    assert shallow(nested(f"1,{text},2", 100).encode()).decode() == nested("1,null,2", 100)


def test_names_that_come_go_and_are_taken_again() -> None:
    known = KnownNames()
    a, again, b = Name("ns", "a", "1"), Name("ns", "a", "2"), Name("other", "a", "3")
    assert [known.put(each) for each in (a, a, b)] == [None, None, None]
    assert known.put(again) == a
    assert known.pop(a) == again
    assert known.pop(a) is None
    known.put(a)
    known.begin()
    known.put(b)
    assert list(known.end()) == [a]
    assert len(known) == 1


def test_pauses_grow_and_never_end() -> None:
    backoff = Backoff()
    pauses = [backoff.pause() for _ in range(20)]
    assert 0.1 <= pauses[0] <= 0.2
    assert all(15 <= pause <= 30 for pause in pauses[-10:])
    assert backoff.pause(at_least=100) == 100
    backoff.reset()
    assert backoff.pause() <= 0.2


def test_the_collector_sleeps_while_caches_fill() -> None:
    before = gc.get_freeze_count()
    try:
        with paused_collector():
            assert not gc.isenabled()
            kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(kept)
        with pytest.raises(KeyError), paused_collector():
            raise KeyError
        assert gc.isenabled()
    finally:
        gc.unfreeze()
