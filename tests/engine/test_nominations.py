"""What is held for whom: nominations that a greater claim takes over, and room for big gangs."""

from dataclasses import replace

import pytest

from aliquot.engine import AffinityTerm, NodeConstraints, PodRules, PodSelector, Requirement
from aliquot.engine.model.decisions import Bind, evictions
from aliquot.engine.model.events import PodGone, PodSet
from aliquot.engine.model.knobs import SECOND, EvictionKnobs
from tests.build.engines import nominated
from tests.build.values import amounts
from tests.engine.world import World


def test_a_claim_whose_nominated_room_was_taken_by_a_greater_one_finds_other_victims() -> None:
    """Two nodes are borrowed; the lesser claim's victim makes room for the greater one."""
    world = World("capacity")
    for number in (1, 2):
        world.node(f"n{number}", amounts(gpu=2))
    world.quota("a", amounts(gpu=4))
    world.quota("b")
    for number in (1, 2):
        world.pod("b", f"x-{number}", amounts(gpu=2), node=f"n{number}", created=number)
    world.pod("a", "low", amounts(gpu=2))
    first = world.cycle()
    assert [each.pod.path for each in evictions(first)] == ["b/x-2"]
    world.apply(PodGone("b/x-2"))
    world.pod("a", "high", amounts(gpu=2), priority=1)
    assert world.run() == {"a/high": "n2", "a/low": "n1"}
    assert world.evicted() == ["b/x-1"]


def reserved(world: World) -> dict[str, str | None]:
    """The nodes that are reserved, by pod."""
    entries = world.state.ledger.entries
    return {world.state.pods[uid].name: entries[uid].booking.node for uid in world.state.reserved}


def starved(world: World, members: int, gpus: int) -> dict[str, str | None]:
    """A gang that others pass for longer than `reserveAfter`; what is then reserved for it."""
    world.gang("g/train", members)
    for number in range(members):
        world.pod("g", f"w-{number}", amounts(gpu=gpus), gang="g/train")
    world.run(0)
    world.pod("x", "small", amounts(gpu=1))
    world.run(1)
    assert not nominated(world.cycle(60))
    return reserved(world)


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
def test_room_is_held_for_a_gang_without_a_quota_where_it_will_fit(policy: str) -> None:
    """Where it fits now; then, of nodes whose pods end at an unknown time, the first."""
    world = World(policy)
    for number in (1, 2, 3):
        world.node(f"n{number}", amounts(gpu=4))
    world.pod("x", "other-2", amounts(gpu=3), node="n2")
    world.pod("x", "other-3", amounts(gpu=4), node="n3")
    assert starved(world, 2, 3) == {"w-0": "n1", "w-1": "n2"}


def test_nothing_is_held_any_longer_for_a_claim_whose_room_is_taken() -> None:
    world = World("capacity")
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=4))
    world.quota("b")
    world.pod("b", "x", amounts(gpu=2), node="n")
    world.pod("a", "low", amounts(gpu=2))
    world.cycle()
    assert set(world.state.ledger.holding) == {"a/low"}
    world.apply(PodGone("b/x"))
    world.pod("a", "high", amounts(gpu=2), priority=1)
    assert world.run() == {"a/high": "n"}
    assert not world.state.ledger.holding


def test_a_claim_that_takes_over_a_nomination_waits_for_the_victims_on_that_node_only() -> None:
    """`high` starts where room was held for `low`, which waits for what was held for `high`."""
    world = World("capacity")
    for number in (1, 2, 3):
        world.node(f"n{number}", amounts(gpu=2))
        world.pod("b", f"x-{number}", amounts(gpu=2), node=f"n{number}", created=number)
    world.quota("a", amounts(gpu=4))
    world.quota("b")
    world.quota("c", amounts(gpu=2))
    world.quota("idle", amounts(gpu=6))
    for team, name, priority in (("a", "high", 1), ("c", "p", 0), ("a", "low", 0)):
        world.pod(team, name, amounts(gpu=2), priority=priority)
        world.cycle()
    assert all(world.engine.is_awaited(f"b/x-{number}") for number in (1, 2, 3))
    world.apply(PodGone("b/x-1"))
    started = [each for each in world.cycle() if isinstance(each, Bind)]
    assert [(each.pod.name, each.node) for each in started] == [("high", "n1")]
    assert world.engine.is_awaited("b/x-3"), "low waits for it now"
    world.apply(PodGone("c/p"))
    assert not world.engine.is_awaited("b/x-2")


def test_a_claim_is_charged_by_the_node_that_is_held_for_it() -> None:
    world = World("capacity")
    world.node("n", amounts(gpu=1), node_class="big")
    world.quota("a", amounts(gpu=1, memory=80))
    world.quota("b")
    world.pod("b", "x", amounts(gpu=1), node="n")
    charges = (("", amounts(gpu=1, memory=32)), ("big", amounts(gpu=1, memory=80)))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    world.cycle()
    claim = world.state.waiting.claim("a/p")
    assert claim.held
    assert world.engine._nominations.node_class(claim) == "big"


def test_no_room_is_held_for_the_last_pod_of_a_gang_that_runs() -> None:
    """One of its two pods was bound by hand; the other one waits like any pod."""
    world = World()
    for number in (1, 2):
        world.node(f"n{number}", amounts(gpu=4))
    world.pod("x", "other", amounts(gpu=3), node="n2")
    world.gang("g/train", 2)
    first, _ = (world.pod("g", f"w-{n}", amounts(gpu=3), gang="g/train") for n in (0, 1))
    world.run(0)
    world.pod("x", "small", amounts(gpu=1))
    world.run(1)
    world.apply(PodSet(replace(first, node="n1")))
    assert not nominated(world.cycle(60))


def test_room_is_held_for_the_gang_that_has_waited_long_enough_not_for_a_greater_one() -> None:
    world = World()
    for number in (1, 2):
        world.node(f"n{number}", amounts(gpu=4))
        world.pod("x", f"other-{number}", amounts(gpu=3), node=f"n{number}")
    for at, name, priority in ((0, "early", 0), (50, "late", 1)):
        world.gang(f"g/{name}", 2)
        for number in range(2):
            more = {"gang": f"g/{name}", "priority": priority, "preempts": False}
            more["created"] = at * SECOND
            world.pod("g", f"{name}-{number}", amounts(gpu=3), **more)
        world.run(at)
    world.pod("x", "small", amounts(gpu=1), priority=0)
    world.run(55)
    world.cycle(60)
    assert set(reserved(world)) == {"early-0", "early-1"}


@pytest.mark.parametrize(("gpus", "count"), [(3, 2), (5, 0)])
def test_no_room_is_held_for_a_gang_that_its_runtime_never_allows(gpus: int, count: int) -> None:
    world = World("hierarchy")
    for number in (1, 2, 3):
        world.node(f"n{number}", amounts(gpu=6))
    world.quota("g", amounts(gpu=6), amounts(gpu=6))
    world.quota("x", amounts(gpu=12), amounts(gpu=13))
    for number in (1, 2, 3):
        world.pod("x", f"other-{number}", amounts(gpu=4), node=f"n{number}")
    assert len(starved(world, 2, gpus)) == count


def test_what_is_held_for_a_pod_stays_when_its_labels_change() -> None:
    """Also before the cluster shows that it is nominated."""
    world = World()
    world.node("n", amounts(gpu=1))
    world.quota("a", amounts(gpu=1))
    world.quota("b")
    world.pod("b", "x", amounts(gpu=1), node="n")
    waits = world.pod("a", "p", amounts(gpu=1))
    world.cycle()
    assert set(world.state.ledger.holding) == {"a/p"}
    world.apply(PodSet(replace(waits, labels=(("app", "x"),))))
    assert set(world.state.ledger.holding) == {"a/p"}


def test_what_was_done_before_is_not_done_again_until_something_changes() -> None:
    """A borrower may preempt in its quota once in the same situation, lest it go in a circle."""
    world = World()
    world.node("n", amounts(gpu=1))
    world.quota("a")
    world.quota("b", amounts(gpu=1))
    low = world.pod("a", "low", amounts(gpu=1), node="n")
    high = world.pod("a", "high", amounts(gpu=1), priority=1)
    guard = world.state.repeat_guard
    guard.record(guard.move(world.state.waiting.fingerprint, (high,), (low,)))
    assert not list(evictions(world.cycle()))
    assert "did so before, and to ask them again goes in a circle" in world.told("a/high")
    world.quota("b", amounts(gpu=2))
    assert [each.pod.name for each in evictions(world.cycle())] == ["low"]


def test_no_pod_goes_for_what_a_reservation_lacks() -> None:
    """b would take back its share of c's idle min by one eviction, but for a's reservation of two.

    What c's own pods wait for, which no node holds, is no part of that share in the order of turns;
    so b's claim is behind the reserved one.
    """
    world = World("fair")
    world.node("n", amounts(gpu=100))
    for team, low, runs in (("a", 4, 8), ("b", 6, 6), ("c", 6, 0), ("d", 5, 7)):
        world.quota(team, amounts(gpu=low))
        for number in range(runs):
            world.pod(team, f"x-{number}", amounts(gpu=1), node="n", created=number)
    nowhere = {"constraints": NodeConstraints(selector=(("no", "node"),))}
    world.pod("c", "q", amounts(gpu=6), shape=nowhere)
    world.pod("a", "big", amounts(gpu=2), created=20)
    world.run(0)
    world.pod("d", "small", amounts(gpu=1), created=30)
    world.apply(PodGone("d/x-0"))
    assert world.run(10) == {"d/small": "n"}
    world.run(80)
    assert reserved(world) == {"big": "n"}
    world.pod("b", "p", amounts(gpu=1), created=40)
    world.run(90)
    assert world.evicted() == []


def test_what_is_held_for_a_pod_does_not_refuse_it_a_node() -> None:
    """The pod is to run near no pod like itself; the hold is its own."""
    world = World()
    world.node("n", amounts(gpu=2), labels=(("host", "n"),))
    world.quota("a", amounts(gpu=1))
    world.quota("b", amounts(gpu=0))
    world.pod("b", "x", amounts(gpu=2), node="n")
    like_itself = PodSelector(("a",), labels=(Requirement("app", "In", ("p",)),))
    rules = PodRules(anti_affinity=(AffinityTerm(like_itself, "host"),))
    world.pod("a", "p", amounts(gpu=1), labels=(("app", "p"),), rules=rules)
    world.cycle()
    assert world.engine.nominated_node("a/p") == "n"
    assert world.engine.node_refusals("a/p") == {"n": "NodeResourcesFit"}
    world.apply(PodGone("b/x"))
    assert world.engine.node_refusals("a/p") == {}


def test_what_is_reserved_is_not_above_a_lowered_max() -> None:
    """Six GPUs are used or reserved, five are the max; its pods use two."""
    world = World(eviction=EvictionKnobs(on_quota_lowered="evict"))
    world.node("n", amounts(gpu=6))
    world.quota("a", amounts(gpu=6), amounts(gpu=6))
    world.pod("x", "other", amounts(gpu=3), node="n")
    world.pod("a", "stays", amounts(gpu=1), node="n")
    world.pod("a", "big", amounts(gpu=4))
    world.run(0)
    world.pod("a", "small", amounts(gpu=1), created=1)
    world.run(1)
    world.run(70)
    assert reserved(world) == {"big": "n"}
    world.quota("a", amounts(gpu=5), amounts(gpu=5))
    world.run(80)
    assert world.evicted() == []


def test_claims_that_found_no_victims_are_tried_again_once_a_node_is_lost() -> None:
    """A claim whose hold ended may take it again then; nothing else happens that would wake it."""
    world = World(eviction=EvictionKnobs(node_lost_after=600 * SECOND))
    world.node("n", amounts(gpu=1), ready=False, not_ready_since=0)
    world.cycle(599)
    news = world.state.changes.victims.cursor()
    world.cycle(599)
    assert not news.read()
    world.cycle(600)
    assert news.read()
