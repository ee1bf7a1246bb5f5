"""The brake on evictions: what it lets through, what it says, what it costs."""

from typing import Any

import pytest

from aliquot.engine import EvictionKnobs, EvictionsPaused, EvictionsResumed, NodeGone, PodGone
from aliquot.engine.model.decisions import evictions
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.model.reasons import Reason
from tests.build.values import GPU
from tests.engine.world import World


def lent(pods: int = 4, **knobs: Any) -> World:
    """A borrower runs on GPUs that are all guaranteed to the owner."""
    world = World("capacity", eviction=EvictionKnobs(**knobs))
    world.node("n", ((GPU, pods),))
    world.quota("owner", ((GPU, pods),))
    world.quota("borrower")
    for each in range(pods):
        world.pod("borrower", f"b{each}", ((GPU, 1),), node="n")
    return world


def ask(world: World, name: str, gpus: int = 1, **more: Any) -> None:
    world.pod("owner", name, ((GPU, gpus),), **more)


def reason(world: World, path: str) -> Reason | None:
    refusal = world.engine.why(path)
    return None if refusal is None else refusal.reason


def test_the_message_says_which_brake_with_the_numbers_and_when_it_opens() -> None:
    world = lent(max_per_minute=1)
    ask(world, "first")
    ask(world, "second")
    world.run(10)
    told = world.told("owner/second")
    assert "it needs 1, and 1 of 1 were made in the last minute" in told
    assert "eviction.maxPerMinute is 1" in told
    assert "the next may be made in 60 s" in told
    assert "NoNodeFits: 0/1 nodes fit" in told
    later = world.engine.why("owner/second", 40 * SECOND)
    assert later is not None
    assert "the next may be made in 30 s" in later.message


def test_the_share_counts_all_running_pods_and_lets_at_least_one_go() -> None:
    world = lent(pods=10, max_per_minute=5, max_share=25)
    for each in range(4):
        ask(world, f"o{each}")
    world.run(10)
    assert len(world.evicted()) == 2
    assert "eviction.maxShare is 25% of 10 running pods" in world.told("owner/o3")


def test_nothing_is_held_for_a_braked_claim() -> None:
    world = lent(max_per_minute=1)
    ask(world, "first")
    ask(world, "second")
    world.cycle(10)
    assert world.engine.nominated_node("owner/first") == "n"
    assert world.engine.nominated_node("owner/second") is None


def test_pods_of_a_lost_node_are_not_braked() -> None:
    world = lent(max_per_minute=1)
    world.apply(NodeGone("n"))
    gone = list(evictions(world.cycle(10)))
    assert [each.reason for each in gone] == [Reason.NODE_LOST] * 4
    assert world.engine.brake().made == 0


def test_the_victims_of_a_gang_go_together_after_a_minute_without_evictions() -> None:
    world = lent(max_per_minute=2)
    ask(world, "single")
    world.run(10)
    assert len(world.evicted()) == 1
    world.gang("owner/g", 3)
    for each in range(3):
        ask(world, f"g{each}", gang="owner/g")
    world.run(20)
    assert world.evicted() == []
    assert "more than a minute allows go together, after" in world.told("owner/g0")
    assert world.engine.next_deadline() == 70 * SECOND
    world.run(69)
    assert world.evicted() == []
    assert set(world.run(70)) == {"owner/g0", "owner/g1", "owner/g2"}
    assert len(world.evicted()) == 3


def test_claims_behind_a_braked_one_go_on_when_it_is_gone() -> None:
    world = lent(max_per_minute=2)
    ask(world, "single", priority=9)
    world.run(10)
    ask(world, "big", 3, priority=5)
    ask(world, "small")
    world.run(20)
    assert len(world.evicted()) == 1
    assert reason(world, "owner/small") is Reason.EVICTION_BRAKE
    assert "what is left is kept for owner/big, which comes before" in world.told("owner/small")
    world.apply(PodGone("owner/big"))
    assert list(world.run(21)) == ["owner/small"]
    assert len(world.evicted()) == 1


def test_a_braked_claim_starts_on_what_comes_free() -> None:
    world = lent(max_per_minute=1)
    ask(world, "first")
    ask(world, "second")
    world.run(10)
    left = sorted({f"borrower/b{each}" for each in range(4)} - set(world.evicted()))
    world.apply(PodGone(left[0]))
    assert list(world.run(11)) == ["owner/second"]
    assert world.evicted() == []


def test_nothing_is_evicted_while_paused_and_binds_go_on() -> None:
    world = lent()
    world.apply(EvictionsPaused("by ops since noon: an incident"))
    world.node("m", ((GPU, 1),))
    ask(world, "first")
    ask(world, "second")
    ask(world, "third")
    assert world.run(10) == {"owner/first": "m"}
    assert world.evicted() == []
    assert reason(world, "owner/second") is Reason.EVICTIONS_PAUSED
    assert "evictions are paused by ops since noon: an incident" in world.told("owner/second")
    world.apply(PodGone("borrower/b0"))
    assert list(world.run(11)) == ["owner/second"]
    world.apply(EvictionsResumed())
    assert list(world.run(12)) == ["owner/third"]
    assert len(world.evicted()) == 1


def test_a_pause_with_an_end_ends_by_itself() -> None:
    world = lent()
    world.apply(EvictionsPaused("by ops", 100 * SECOND))
    ask(world, "first")
    world.run(10)
    assert "they resume in 90 s" in world.told("owner/first")
    assert world.engine.next_deadline() == 100 * SECOND
    assert world.evicted() == []
    assert list(world.run(100)) == ["owner/first"]
    assert not world.engine.brake().paused


def test_a_lowered_quota_gives_back_a_minute_at_a_time() -> None:
    world = World("hierarchy", eviction=EvictionKnobs(max_per_minute=1, on_quota_lowered="evict"))
    world.node("n", ((GPU, 4),))
    world.quota("a", ((GPU, 4),), ((GPU, 4),))
    for each in range(4):
        world.pod("a", f"p{each}", ((GPU, 1),), node="n")
    world.run(0)
    world.quota("a", ((GPU, 1),), ((GPU, 1),))
    gone = []
    for second in (1, 30, 61, 121, 181):
        world.run(second)
        gone.append(len(world.evicted()))
    assert gone == [1, 0, 1, 1, 0]


@pytest.mark.parametrize("paused", [False, True])
def test_braked_claims_are_not_searched_for_again_and_again(
    paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(pods=40, max_per_minute=1)
    if paused:
        world.apply(EvictionsPaused())
    for each in range(30):
        ask(world, f"o{each:02}", priority=100 - each)  # a lane of its own each
    world.run(10)
    searches, trial = 0, world.engine._trial
    search = trial._search

    def counted(claim: Any) -> Any:
        nonlocal searches
        searches += 1
        return search(claim)

    monkeypatch.setattr(trial, "_search", counted)
    for second in range(70, 70 + 5 * 60, 60):
        world.run(second)
    assert len(world.evicted()) == (0 if paused else 6)
    assert searches <= 5 * 5  # of 30 claims, each minute: the next to go, and the one after it
