"""Nothing is started that a waiting claim within min would take back at once."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import NodeGone, PodGone
from aliquot.engine.model.knobs import CapacityKnobs, FairKnobs
from aliquot.engine.queue import effort
from tests.build.values import amounts
from tests.campaign import examples, length
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


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_random_starts_are_without_evictions(policy: str) -> None:
    """Under `fair`, too, which takes back what is beyond a share, by the sizes of pods."""
    for number in range(length(60, 5_000)):
        world = _random_start(number, policy)
        world.run(30)
        assert world.evictions == [], number


@pytest.mark.parametrize(
    ("policy", "number"),
    [("capacity", 13_264), ("fair", 620), ("fair", 1_433), ("fair", 1_521), ("fair", 1_818)],
)
def test_who_takes_back_from_whom_may_go_in_a_circle(policy: str, number: int) -> None:
    """Starts that are withdrawn in turn: the search for victims has the last word."""
    world = _random_start(number, policy)
    world.run(30)
    assert world.evictions == []


@pytest.mark.parametrize("number", [51, 55, 216, 334, 367, 435])
def test_a_start_in_bounded_cycles_is_without_evictions_and_ends(number: int) -> None:
    """Of more claims than a bounded cycle searches victims for."""
    world = _random_start(number, "fair")
    assert _play_bounded(world) > 1
    assert world.evictions == []


def test_the_bind_of_a_borrower_is_kept_back_until_all_claims_were_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A claim that waits for a search could take it back; one within min is bound at once."""
    world = _kept_back(monkeypatch)
    assert _bound(world) == []
    assert world.engine.unfinished
    while world.engine.unfinished:
        bound = _bound(world)
    assert bound == ["b/p"]


def test_a_bind_that_is_kept_back_is_dropped_with_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was never handed out: the pod waits again, and is not evicted."""
    world = _kept_back(monkeypatch)
    _bound(world)
    world.apply(NodeGone("n"))
    while world.engine.unfinished:
        assert list(binds_and_evictions(world.engine.cycle(bounded=True))) == []
    assert world.engine.why("b/p") is not None


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


def test_a_later_start_is_withdrawn_for_a_claim_that_was_refused_before_it() -> None:
    """a/p finds nothing to take back until b/q has brought b beyond its share."""
    world = _world("fair", "unusedMin")
    world.quota("a", amounts(3))
    world.quota("b", amounts(3))
    world.pod("a", "p", amounts(4), created=6)
    world.pod("b", "p", amounts(4), created=12, priority=10)
    world.pod("b", "q", amounts(2), created=15)
    assert set(world.run(30)) == {"a/p", "b/q"}
    assert world.evictions == []


def _world(policy: str, borrow: str) -> World:
    knobs = {"capacity": CapacityKnobs(borrow), "fair": FairKnobs(borrow)}  # type: ignore[arg-type]
    world = World(policy, **{policy: knobs[policy]})
    world.node("n", amounts(300))
    return world


def _random_start(number: int, policy: str) -> World:
    """Teams with pods of any size and priority, all known at one instant; there is room for all."""
    chance = Random(number)
    world = _world(policy, chance.choice(["unusedMin", "freeCapacity"]))
    for team in TEAMS[: chance.randint(2, len(TEAMS))]:
        world.quota(team, amounts(chance.randint(0, 6)))
        for pod in range(chance.randint(0, 6)):
            asks, created = amounts(chance.randint(1, 5)), chance.randint(0, 20)
            priority = chance.choice((0, 0, 0, 10))
            world.pod(team, f"p{pod}", asks, created=created, priority=priority)
    return world


def _play_bounded(world: World) -> int:
    """Let the decisions of bounded cycles come true until there are no more; of how many cycles."""
    for cycles in range(1, 200):
        decisions = world.engine.cycle(bounded=True)
        for each in binds_and_evictions(decisions):
            if isinstance(each, Bind):
                world.bound(each)
            else:
                world.evictions.append(each)
                world.apply(PodGone(each.pod.uid))
        if not world.engine.unfinished and not any(binds_and_evictions(decisions)):
            return cycles
    raise AssertionError("it does not come to rest")


def _kept_back(monkeypatch: pytest.MonkeyPatch) -> World:
    """b/p has started when a/x and a/y ask for a search each, of which a cycle has one."""
    monkeypatch.setattr(effort, "_SEARCH_SCALE", 0)
    monkeypatch.setattr(effort, "_FEWEST_SEARCHES", 1)
    world = _world("capacity", "unusedMin")
    world.quota("a", amounts(4))
    world.quota("b", amounts(0))
    world.pod("b", "p", amounts(1), created=0)
    world.pod("a", "x", amounts(5), created=1)
    world.pod("a", "y", amounts(6), created=2)
    return world


def _bound(world: World) -> list[str]:
    decisions = world.engine.cycle(bounded=True)
    return [each.pod.path for each in decisions if isinstance(each, Bind)]
