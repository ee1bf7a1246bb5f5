"""The starts of a cycle, sorted by quota, and the claims that have left their lane."""

from aliquot.engine.books.node_classes import NodeClasses
from aliquot.engine.columns import Resources
from aliquot.engine.holds.fresh_starts import StartsByQuota
from aliquot.engine.placement.ask import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.lane import Lane
from tests.build.values import pod


def claim_of(name: str, quota: str, priority: int = 0) -> Claim:
    one, resources = pod(name, (), "ns", priority=priority), Resources()
    ask = Ask(one.shape, resources, "pack", NodeClasses(resources))
    return Claim((one,), (ask,), quota)


def test_starts_are_sorted_whenever_they_are_asked_for() -> None:
    starts, low, high = StartsByQuota(), claim_of("low", "a"), claim_of("high", "a", priority=5)
    starts.add(low)
    assert starts.has_less_important(high)
    assert not starts.has_less_important(claim_of("other", "b", priority=5))
    starts.add(high)
    assert list(starts.claims()["a"]) == [low.uid, high.uid]
    starts.remove(low)
    assert not starts.has_less_important(high)
    starts.add(claim_of("late", "b"))
    starts.remove(high)
    assert list(starts.claims()) == ["b"]


def test_a_claim_that_waits_in_another_lane_is_not_the_head_of_its_first() -> None:
    first, second, moved, next_one = Lane((1,)), Lane((2,)), claim_of("a", "q"), claim_of("b", "q")
    first.add(moved)
    first.add(next_one)
    assert first.head is moved
    first.drop(moved)
    second.add(moved)
    assert first.head is next_one
    assert second.head is moved
