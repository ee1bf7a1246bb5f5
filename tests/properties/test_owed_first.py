"""Nothing is started that a waiting claim within min would take back at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.model.knobs import CapacityKnobs, FairKnobs
from tests.build.values import amounts
from tests.campaign import examples
from tests.engine.world import World

TEAMS = tuple("abcdefgh")


@pytest.mark.parametrize("borrow", ["unusedMin", "freeCapacity"])
@pytest.mark.parametrize("policy", ["capacity", "fair"])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_deployments_that_are_known_at_one_instant_start_without_evictions(
    policy: str, borrow: str, data: st.DataObject
) -> None:
    """Each team has pods of one size; the node has room for all of them."""
    draw, world = data.draw, _world(policy, borrow)
    for team in TEAMS[: draw(st.integers(2, len(TEAMS)))]:
        world.quota(team, amounts(draw(st.integers(0, 30))))
        asks, created = draw(st.integers(1, 7)), draw(st.integers(0, 3))
        for number in range(draw(st.integers(0, 12))):
            world.pod(team, f"p{number}", amounts(asks), created=created)
    world.run(30)
    assert world.evictions == []


@settings(max_examples=examples(150))
@given(data=st.data())
def test_claims_of_any_size_and_priority_start_without_evictions(data: st.DataObject) -> None:
    """In a quota, one above min may come before one within it."""
    draw, world = data.draw, _world("capacity", "freeCapacity")
    for team in TEAMS[: draw(st.integers(2, len(TEAMS)))]:
        world.quota(team, amounts(draw(st.integers(0, 6))))
        for number, asks in enumerate(draw(st.lists(st.integers(1, 5), max_size=4))):
            created, priority = draw(st.integers(0, 20)), draw(st.sampled_from((0, 0, 0, 10)))
            world.pod(team, f"p{number}", amounts(asks), created=created, priority=priority)
    world.run(30)
    assert world.evictions == []


def test_a_start_that_would_be_taken_back_is_withdrawn() -> None:
    """b/late borrows before a/small is tried, behind a/big of its own quota, which is above min."""
    world = _world("capacity", "unusedMin")
    world.quota("a", amounts(4))
    world.quota("b", amounts(4))
    world.pod("b", "late", amounts(7), created=0)
    world.pod("a", "big", amounts(5), created=1)
    world.pod("a", "small", amounts(2), created=2)
    assert set(world.run(30)) == {"a/big", "a/small"}
    assert world.evictions == []


def test_a_start_that_is_not_in_the_way_is_not_withdrawn() -> None:
    """For c's share of what is idle, a/late has to wait, which is above a's min; a/early need not.

    Both had started, and b's pods.
    """
    world = _world("fair", "unusedMin")
    for team, low in (("a", 5), ("b", 5), ("c", 4)):
        world.quota(team, amounts(low))
    world.pod("a", "early", amounts(3), created=5)
    world.pod("a", "late", amounts(4), created=9, priority=10)
    world.pod("b", "p", amounts(5), created=18, priority=10)
    world.pod("b", "q", amounts(1), created=1)
    world.pod("c", "p", amounts(5), created=16)
    assert set(world.run(30)) == {"a/early", "b/p", "b/q", "c/p"}
    assert world.evictions == []


def test_a_claim_that_would_borrow_replaces_no_start_of_its_own_quota() -> None:
    """b/big is more important than b/small, which is owed; a would take b/big's start back."""
    world = _world("fair", "unusedMin")
    world.quota("a", amounts(6))
    world.quota("b", amounts(3))
    world.pod("a", "p", amounts(4), created=16, priority=10)
    world.pod("a", "q", amounts(3), created=13)
    world.pod("b", "big", amounts(4), created=15, priority=10)
    world.pod("b", "small", amounts(2), created=9)
    world.pod("b", "tiny", amounts(1), created=18)
    assert set(world.run(30)) == {"a/p", "b/small", "b/tiny"}
    assert world.evictions == []


def _world(policy: str, borrow: str) -> World:
    knobs = {"capacity": CapacityKnobs(borrow), "fair": FairKnobs(borrow)}  # type: ignore[arg-type]
    world = World(policy, **{policy: knobs[policy]})
    world.node("n", amounts(300))
    return world
