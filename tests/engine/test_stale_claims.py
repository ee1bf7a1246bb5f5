"""Objects that go while something is held for a claim, or decided for a pod, leave nothing behind.

Each was found by random operations (tests/properties/test_random_operations.py), and made small.
"""

from dataclasses import replace

import pytest

from aliquot.engine import (
    SECOND,
    BindFailed,
    HierarchyKnobs,
    NodeConstraints,
    NodeGone,
    PlacementKnobs,
    PodSet,
    Quota,
    QuotaGone,
    QuotaSet,
    Taint,
    Toleration,
    evictions,
)
from tests.build.values import amounts
from tests.engine.world import World
from tests.properties.books import check_books

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
POLICIES = ("capacity", "fair", "hierarchy", "queues")


def with_a_reservation(policy: str) -> World:
    """Pod `big/p` was passed by others; room is reserved for it on node n1."""
    world = World(policy)
    for name in ("n1", "n2"):
        world.node(name, amounts(gpu=4))
    for team, low in (("big", 6), ("small", 2)):
        world.quota(team, amounts(gpu=low), default_weight=1)
    world.pod("big", "runs", amounts(gpu=1), node="n1")
    world.pod("small", "runs", amounts(gpu=1), node="n2")
    world.pod("big", "p", amounts(gpu=4), created=1, preempts=False)
    world.run(1)
    world.pod("small", "passes", amounts(gpu=1), created=2 * SECOND)
    world.run(2)
    world.run(62)
    assert list(world.state.reserved) == ["big/p"]
    return world


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("asked", [False, True], ids=["decided", "asked"])
def test_a_quota_that_goes_while_a_claim_of_it_has_a_reservation(policy: str, asked: bool) -> None:
    world = with_a_reservation(policy)
    world.apply(QuotaGone("big"))
    world.pod("small", "next", amounts(gpu=1), created=63 * SECOND)
    if asked:
        world.engine.why("small/next")
    world.run(63)
    check_books(world.engine)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_node_that_goes_while_it_is_reserved(policy: str) -> None:
    world = with_a_reservation(policy)
    node = world.engine.booked_node("big/p")
    assert node is not None
    world.apply(NodeGone(node))
    world.pod("small", "next", amounts(gpu=1), created=63 * SECOND, expected_duration=SECOND)
    world.run(63)
    assert world.engine.booked_node("big/p") != node


@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
def test_a_quota_that_goes_while_a_gang_over_several_is_incomplete(policy: str) -> None:
    """The question why it waits is answered, and so is the next cycle."""
    world = World(policy)
    world.node("n", amounts(gpu=4))
    for name in ("p", "q"):
        world.apply(QuotaSet(Quota(name, amounts(gpu=2), default_weight=1)))
    world.gang("a/g", 3)
    for name in ("p", "q"):
        world.pod("a", f"in-{name}", amounts(gpu=1), quota=name, gang="a/g")
    world.run()
    world.apply(QuotaGone("q"))
    world.run()
    assert "1 of them is missing" in world.told("a/in-p")


def test_a_bind_that_fails_after_its_node_was_lost_frees_nothing_that_it_does_not_hold() -> None:
    """Its room must not count as about to be free: it is, or it is on no node at all."""
    world = World("capacity")
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=4))
    pod = world.pod("a", "p", amounts(gpu=2))
    present = world.state.repeat_guard.present
    world.cycle()
    world.apply(NodeGone("n"))
    assert world.cycle() == [], "it may never have run"
    world.apply(BindFailed(pod.uid))
    assert not len(world.state.leaving)
    assert world.state.repeat_guard.present == present
    check_books(world.engine)
    world.node("n", amounts(gpu=2))
    assert world.run() == {"a/p": "n"}


def test_what_is_reserved_for_a_claim_of_a_quota_is_not_used_by_it() -> None:
    """With `recycle: always`, no pod of a quota within its runtime is evicted for nothing."""
    world = World(
        "hierarchy",
        hierarchy=HierarchyKnobs(revoke_after=30 * SECOND, recycle="always", surplus=False),
    )
    for name in ("n1", "n2"):
        world.node(name, amounts(gpu=4))
    world.quota("a", amounts(gpu=8), amounts(gpu=8))
    for number in range(3):
        world.pod("a", f"x{number}", amounts(gpu=2), node=f"n{1 + number % 2}", created=0)
    world.pod("a", "big", amounts(gpu=4), created=1, preempts=False)
    world.run(1)
    world.pod("a", "passes", amounts(gpu=1), created=2 * SECOND)
    world.run(2)
    for second in (62, 100, 200, 300):
        world.run(second)
    assert list(world.state.reserved) == ["a/big"]
    assert world.evicted() == []


def test_a_reservation_grants_nothing_that_an_ended_nomination_had() -> None:
    """Queue q was above deserved when its claim was nominated; the nomination has ended."""
    world = World("queues")
    world.node("n", amounts(gpu=4))
    for name in ("p", "q"):
        world.quota(name, default_weight=1, lend=False)
    for number in range(3):
        world.pod("q", f"low{number}", amounts(gpu=1), node="n", created=number)
    world.pod("p", "x", amounts(gpu=1), node="n")
    world.pod("p", "waits", amounts(gpu=1), preempts=False)
    world.pod("q", "high", amounts(gpu=1), priority=10, created=9)
    assert len(list(evictions(world.cycle(0)))) == 1
    claim = world.state.waiting.claim("q/high")
    row, slot = world.state.resources.row("nvidia.com/gpu"), world.state.tree.slots["q"]
    assert world.engine._policy.gates.share_for(claim, row, slot) == 3  # type: ignore[attr-defined]
    world.state.reserved["q/high"] = None
    assert world.engine._policy.gates.share_for(claim, row, slot) == 2  # type: ignore[attr-defined]


def test_a_pod_that_is_resized_while_its_bind_is_on_the_way_is_charged_as_it_is() -> None:
    world = World("capacity")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=4))
    pod = world.pod("a", "p", amounts(gpu=1))
    world.cycle()
    larger = replace(pod.shape, requests=(("nvidia.com/gpu", 2), ("pods", 1)))
    world.apply(PodSet(replace(pod, shape=larger, node="n")))
    check_books(world.engine)
    assert world.engine.summarise()[0].used["nvidia.com/gpu"] == 2


@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
def test_what_starts_on_a_cordoned_node_is_shared_at_once(policy: str) -> None:
    """The total is what the open node has, and what runs on the cordoned one: it grows."""
    world = World(
        policy,
        hierarchy=HierarchyKnobs(surplus=False),
        placement=PlacementKnobs(score="spread"),
    )
    world.node("closed", amounts(gpu=4), taints=(CORDON,))
    world.node("open", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), default_weight=1, reclaimable=False)
    tolerant = NodeConstraints(tolerations=(Toleration(operator="Exists"),))
    for number in range(8):
        world.pod("a", f"p{number}", amounts(gpu=1), shape={"constraints": tolerant})
    assert sorted(world.run().values()) == ["closed"] * 4 + ["open"] * 4
