"""When claims that were refused are tried again."""

from dataclasses import replace

from aliquot.engine.model.decisions import Bind, evictions
from aliquot.engine.model.events import PodGone, PodSet
from aliquot.engine.model.knobs import SECOND, EvictionKnobs
from tests.build.values import amounts
from tests.engine.world import World


def evicted(world: World, seconds: int | None = None) -> list[str]:
    return [each.pod.path for each in evictions(world.cycle(seconds))]


def test_a_pod_of_its_quota_can_make_way_once_it_is_known_to_run() -> None:
    """Until the cluster says that it is bound, no pod is evicted; then the claim is tried again."""
    world = World()
    world.node("n", amounts(gpu=1))
    world.quota("a", amounts(gpu=1, pods=9))
    less = world.pod("a", "less", amounts(gpu=1))
    assert [each.pod.path for each in world.cycle() if isinstance(each, Bind)] == ["a/less"]
    world.pod("a", "p", amounts(gpu=1), priority=3)
    assert evicted(world) == []
    world.apply(PodSet(replace(less, node="n")))
    assert evicted(world) == ["a/less"]


def test_a_pod_that_has_become_less_important_can_make_way() -> None:
    """As when the priority of its gang is lowered."""
    world = World()
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=1), amounts(gpu=1))
    first = world.pod("a", "first", amounts(gpu=1), node="n", priority=3)
    world.pod("a", "p", amounts(gpu=1), priority=3)
    assert evicted(world) == []
    world.apply(PodSet(replace(first, priority=0)))
    assert evicted(world) == ["a/first"]


def test_a_claim_waits_for_pods_that_have_just_started() -> None:
    """A cycle is due when the first of them has run for `minRuntime`, and then it goes."""
    world = World(eviction=EvictionKnobs(min_runtime=60 * SECOND))
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2))
    world.quota("b")
    world.pod("b", "x-0", amounts(gpu=1), node="n", started=10 * SECOND)
    world.pod("b", "x-1", amounts(gpu=1), node="n", started=20 * SECOND)
    world.pod("a", "p", amounts(gpu=1))
    assert evicted(world, 30) == []
    assert world.engine.next_deadline() == 70 * SECOND
    assert evicted(world, 69) == []
    assert evicted(world, 70) == ["b/x-0"]


def test_room_that_is_not_enough_by_itself_may_be_with_a_lesser_pod_gone() -> None:
    """Pods without a quota preempt each other; one of higher priority has left."""
    world = World()
    world.node("n", amounts(gpu=2))
    world.pod("x", "great", amounts(gpu=1), node="n", priority=5)
    world.pod("x", "less", amounts(gpu=1), node="n")
    world.pod("x", "p", amounts(gpu=2), priority=3)
    assert evicted(world) == []
    world.apply(PodGone("x/great"))
    assert evicted(world) == ["x/less"]


def test_what_is_given_back_lets_others_start() -> None:
    world = World()
    world.node("n", amounts(gpu=1))
    world.quota("a", amounts(gpu=1), amounts(gpu=1))
    world.pod("a", "x", amounts(gpu=1), node="n", priority=5)
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.engine.next_deadline() is None, "nothing to wait for but others"
    world.apply(PodGone("a/x"))
    assert [each.pod.path for each in world.cycle() if isinstance(each, Bind)] == ["a/p"]


def test_a_pod_without_a_quota_can_make_way_once_it_has_become_less_important() -> None:
    world = World()
    world.node("n", amounts(gpu=1))
    first = world.pod("x", "first", amounts(gpu=1), node="n", priority=9)
    world.pod("x", "p", amounts(gpu=1), priority=5)
    assert evicted(world) == []
    world.apply(PodSet(replace(first, priority=0)))
    assert evicted(world) == ["x/first"]
