"""Patience: what ends by itself is not evicted, and every owed claim starts all the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine import (
    Evict,
    EvictionKnobs,
    EvictionsPaused,
    EvictionsResumed,
    NodeGone,
    PodGone,
    PodSet,
    Reason,
)
from aliquot.engine.model.knobs import SECOND
from tests.build.values import GPU
from tests.campaign import SOAK, examples, piece
from tests.properties.long_run import CYCLES, LongRun
from tests.properties.passing_time import Clockwork, arrival
from tools.streams.profile import POLICIES

PIECES = 200
LENGTHS = (SECOND // 3, SECOND, 7 * SECOND, 40 * SECOND, 700 * SECOND)
"""From below a second to longer than holds last."""


def busy(policy: str, patience: int, lasts: list[int | None]) -> Clockwork:
    """A borrower's pods run on all GPUs, of which the owner is guaranteed every one."""
    world = Clockwork(policy, eviction=EvictionKnobs(patience=patience * SECOND))
    world.node("n", ((GPU, len(lasts)),))
    world.quota("owner", ((GPU, len(lasts)),))
    world.quota("borrower")
    world.expect(
        arrival(0, "borrower", f"b{number}", 1, lasts=each, says=None)
        for number, each in enumerate(lasts)
    )
    while world.step(0):
        pass
    return world


@pytest.mark.parametrize("policy", ["capacity", "fair"])
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), patience=st.integers(0, 50))
def test_an_owed_claim_starts_within_twice_its_patience(
    policy: str, data: st.DataObject, patience: int
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    times = data.draw(st.lists(st.integers(1, 90), min_size=len(sizes), max_size=len(sizes)))
    total = sum(sizes)
    lasts = data.draw(st.lists(st.none() | st.integers(1, 150), min_size=total, max_size=total))
    world = busy(policy, patience, lasts)
    came = {f"owner/o{number}": at for number, at in enumerate(sorted(times))}
    priorities = st.sampled_from((0, 0, 5))
    world.expect(
        arrival(at, "owner", f"o{number}", sizes[number], priority=data.draw(priorities))
        for number, at in enumerate(came.values())
    )
    seen = 0
    while world.step(10_000):
        for each in world.evictions[seen:]:
            assert each.claimant is not None
            assert world.second >= came[each.claimant.uid] + patience
        seen = len(world.evictions)
    for uid, at in came.items():
        assert at <= world.started[uid] <= at + 2 * patience


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), patience=st.integers(1, 50))
def test_only_what_has_not_ended_by_then_is_evicted(data: st.DataObject, patience: int) -> None:
    """One claim: which pods will end, the engine does not know."""
    lasts = data.draw(st.lists(st.none() | st.integers(2, 100), min_size=1, max_size=8))
    size = data.draw(st.integers(1, len(lasts)))
    world = busy("capacity", patience, lasts)
    world.expect([arrival(1, "owner", "claim", size)])
    while world.step(1 + patience):
        pass
    ended = sum(each is not None and each <= 1 + patience for each in lasts)
    assert len(world.evictions) == max(size - ended, 0)
    assert "owner/claim" in world.started


def test_what_comes_free_is_kept_for_the_claim() -> None:
    world = busy("capacity", 20, [5, 15, None])
    world.expect([arrival(1, "owner", "claim", 2), arrival(2, "borrower", "late", 1)])
    while world.step(14):
        pass
    assert world.started.keys() & {"owner/claim", "borrower/late"} == set()
    refusal = world.engine.why("owner/claim")
    assert refusal is not None
    assert refusal.reason is Reason.WAITING_FOR_VICTIMS
    while world.step(100):
        pass
    assert world.evictions == []
    assert world.started["owner/claim"] == 15


def test_victims_run_on_when_the_claim_is_gone() -> None:
    world = busy("capacity", 20, [None, None])
    world.expect([arrival(1, "owner", "first", 1), arrival(10, "owner", "second", 2)])
    while world.step(9):
        pass
    world.apply(PodGone("owner/first"))
    while world.step(29):
        pass
    assert world.evictions == []
    while world.step(100):
        pass
    assert world.started["owner/second"] == 30
    assert len(world.evictions) == 2


def test_patience_begins_with_victims_and_not_with_a_pod_that_terminates() -> None:
    world = busy("capacity", 20, [None, None])
    leaving = replace(world.pods["borrower/b0"], terminating=True, gone_by=60 * SECOND)
    world.apply(PodSet(leaving))
    world.expect([arrival(2, "owner", "claim", 1), arrival(24, "owner", "first", 1, priority=5)])
    while world.step(43):
        pass
    assert world.evictions == []
    while world.step(44):
        pass
    assert [each.pod.path for each in world.evictions] == ["borrower/b1"]
    assert {"owner/claim", "owner/first"} & world.started.keys()


def test_a_victim_that_is_lost_with_its_node_does_not_run_again() -> None:
    world = busy("capacity", 20, [None])
    world.expect([arrival(1, "owner", "claim", 1)])
    while world.step(5):
        pass
    assert world.evictions == []
    world.engine.apply(NodeGone("n"))
    lost = [each for each in world.engine.cycle(6 * SECOND) if isinstance(each, Evict)]
    assert [(each.pod.path, each.reason) for each in lost] == [("borrower/b0", Reason.NODE_LOST)]
    world.engine.cycle(30 * SECOND)
    assert "borrower/b0" in world.state.leaving


def test_no_victim_goes_while_evictions_are_paused() -> None:
    world = busy("capacity", 20, [None])
    world.expect([arrival(1, "owner", "claim", 1), arrival(2, "apart", "later", 1)])
    while world.step(2):
        pass
    world.apply(EvictionsPaused("by a test"))
    while world.step(100):
        pass
    world.decide()
    assert world.evictions == []
    refusal = world.engine.why("owner/claim")
    assert refusal is not None
    assert refusal.reason is Reason.EVICTIONS_PAUSED
    world.apply(EvictionsResumed())
    world.now = 200 * SECOND
    world.decide()
    assert [each.pod.path for each in world.evictions] == ["borrower/b0"]


@pytest.mark.parametrize(
    ("seed", "policy"),
    [
        (32, "capacity"),
        (44, "fair"),
        (64, "queues"),
        (71, "hierarchy"),
        (144, "capacity"),
        (216, "fair"),
        (234, "capacity"),
    ],
)
def test_histories_with_patience_that_once_broke_an_invariant(seed: int, policy: str) -> None:
    LongRun(seed, policy, patience=LENGTHS[seed % len(LENGTHS)]).play(CYCLES // 2)


def test_a_reserved_claim_that_starts_on_idle_room_gets_cards_that_are_free() -> None:
    LongRun(137, "queues", patience=LENGTHS[137 % len(LENGTHS)]).play(CYCLES // 2)


@pytest.mark.skipif(not SOAK, reason="seed 243 is open: in `make soak`")
@pytest.mark.parametrize("policy", POLICIES)
def test_no_history_with_patience_breaks_an_invariant(policy: str) -> None:
    first = piece(PIECES) * len(LENGTHS)
    for number, patience in enumerate(LENGTHS):
        LongRun(first + number, policy, patience=patience).play(CYCLES // 2)
