"""A bounded cycle stops after so many trials and searches; the next one goes on."""

from dataclasses import replace

import pytest

from aliquot.engine import Bind, Nominate
from aliquot.engine.model.decisions import Decision, binds_and_evictions
from aliquot.engine.model.events import PodGone, PodSet
from aliquot.engine.queue import effort
from tests.build.values import amounts
from tests.engine.world import World

FEW = 3


@pytest.fixture(autouse=True)
def small_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three searches a cycle, so that a few pods show what thousands do."""
    monkeypatch.setattr(effort, "_SEARCH_SCALE", 0)
    monkeypatch.setattr(effort, "_FEWEST_SEARCHES", FEW)


def reclaiming(claims: int) -> World:
    """A borrower fills a node, and as many claims of distinct sizes are owed it."""
    world = World("capacity")
    world.node("n", amounts(cpu=claims, memory=100))
    world.quota("owner", amounts(cpu=claims))
    world.quota("borrower", amounts(cpu=0))
    for number in range(claims):
        world.pod("borrower", f"b{number}", amounts(cpu=1), node="n")
        world.pod("owner", f"o{number}", amounts(cpu=1, memory=number + 1), created=number)
    return world


def nominated(decisions: list[Decision]) -> list[str]:
    return [each.pods[0].name for each in decisions if isinstance(each, Nominate)]


def test_victims_are_searched_for_a_few_claims_in_each_cycle() -> None:
    world = reclaiming(8)
    in_turn = []
    for _ in range(4):
        found = nominated(world.engine.cycle(bounded=True))
        assert len(found) <= FEW
        in_turn += found
    assert not world.engine.unfinished
    assert in_turn == [f"o{number}" for number in range(8)], "in the policy's order"


def test_a_next_cycle_is_due_at_once_while_claims_are_left() -> None:
    world = reclaiming(8)
    world.engine.cycle(5, bounded=True)
    assert world.engine.next_deadline() == 5


def test_a_claim_that_needs_no_victims_is_not_behind_searches() -> None:
    """One without a quota is not; one that would borrow could be taken back at once."""
    world = reclaiming(8)
    world.node("apart", amounts(cpu=3))
    for team in ("none", "borrower"):
        world.pod(team, "late", amounts(cpu=1), created=99)
    started = [each.pod.path for each in world.engine.cycle(bounded=True) if isinstance(each, Bind)]
    assert started == ["none/late"]


def test_claims_that_found_no_victims_are_tried_again_a_few_in_each_cycle() -> None:
    """A node without cpus has come: nine kinds of claims in turn, in three cycles or in one."""
    world = World()
    world.node("n", amounts(cpu=10))
    world.quota("a", amounts(cpu=10))
    world.quota("b", amounts(cpu=10))
    world.pod("b", "x", amounts(cpu=10), node="n")
    for number in range(9):
        world.pod("a", f"p{number}", amounts(cpu=number + 1))
    world.cycle()
    world.cycle()
    assert world.engine.next_deadline() is None
    world.node("bare", amounts(cpu=0))
    for _ in range(2):
        world.engine.cycle(bounded=True)
        assert world.engine.unfinished
    world.engine.cycle(bounded=True)
    assert world.engine.next_deadline() is None
    world.node("barer", amounts(cpu=0))
    world.cycle()
    assert world.engine.next_deadline() is None


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_bounded_cycles_come_to_the_same_end(policy: str) -> None:
    """Who runs at rest does not depend on how many cycles it took."""
    ends = []
    for bounded in (False, True):
        world = World(policy)
        for number in range(4):
            world.node(f"n{number}", amounts(cpu=6))
        for team, low in (("a", 4), ("b", 8), ("c", 12)):
            world.quota(team, amounts(cpu=low))
            for number in range(9):
                world.pod(team, f"p{number}", amounts(cpu=1 + number % 3), created=number)
        started = dict.fromkeys(_play(world, bounded))
        ends.append(sorted(started))
    assert ends[0] == ends[1]


def _play(world: World, bounded: bool) -> list[str]:
    """Let decisions come true until there are no more; the pods that run then."""
    running: dict[str, None] = {}
    for _ in range(200):
        decisions = world.engine.cycle(bounded=bounded)
        for each in binds_and_evictions(decisions):
            if isinstance(each, Bind):
                running[each.pod.path] = None
                world.bound(each)
            else:
                running.pop(each.pod.path, None)
                world.apply(PodGone(each.pod.uid))
        if not world.engine.unfinished and not any(binds_and_evictions(decisions)):
            return list(running)
    raise AssertionError("it does not come to rest")


def test_an_eviction_is_not_wanted_once_other_pods_have_left() -> None:
    """The borrower has scaled down meanwhile: the claim can start without its victim."""
    world = reclaiming(1)
    world.node("n", amounts(cpu=2, memory=100))
    world.quota("owner", amounts(cpu=2))
    world.pod("borrower", "b1", amounts(cpu=1), node="n", created=1)
    plan = next(each for each in world.cycle() if isinstance(each, Nominate))
    victim = plan.victims[0]
    assert world.engine.is_wanted(victim)
    (other,) = {"b0", "b1"} - {victim.pod.name}
    world.apply(PodGone(f"borrower/{other}"))
    assert not world.engine.is_wanted(victim)


def gang_of_borrowers(members: int, least: int) -> tuple[World, Nominate]:
    """A gang with a pod on each of its nodes, and an owner that is owed the room of one."""
    world = World("capacity")
    world.quota("owner", amounts(cpu=1))
    world.quota("borrower", amounts(cpu=members - 1))
    world.gang("borrower/g", least)
    for number in range(members):
        world.node(f"n{number}", amounts(cpu=1))
        where = {"node": f"n{number}", "gang": "borrower/g", "created": number}
        world.pod("borrower", f"b{number}", amounts(cpu=1), **where)
    world.pod("owner", "o", amounts(cpu=1))
    plan = next(each for each in world.cycle() if isinstance(each, Nominate))
    return world, plan


def test_pods_of_a_gang_that_go_together_are_wanted_together() -> None:
    """The room of either would do for the claim; one left alone would be of no use."""
    world, plan = gang_of_borrowers(2, least=2)
    assert len(plan.victims) == 2
    assert [world.engine.is_wanted(each) for each in plan.victims] == [True, True]
    first, second = plan.victims
    world.apply(PodSet(replace(first.pod, node="n0", terminating=True)))
    assert world.engine.is_wanted(second), "the other one has been asked to go"


def test_a_pod_that_its_gang_can_spare_is_wanted_by_itself() -> None:
    world, plan = gang_of_borrowers(3, least=2)
    (victim,) = plan.victims
    assert world.engine.is_wanted(victim)
    world.apply(PodGone("borrower/b0"))
    assert world.engine.is_wanted(victim) is (victim.pod.name == "b0")
