"""Gangs beyond the scenarios: who stands in for a pod that finds no room, and what they ask for."""

import pytest

from aliquot.engine import QuotaGone
from tests.build.values import GPU, amounts
from tests.engine.world import World


def test_as_many_start_of_a_kind_as_there_is_room_for_and_others_stand_in() -> None:
    """Three of four pods will do. Two of the large ones fit, and the small one beside them."""
    world = World()
    world.node("n", amounts(gpu=5))
    world.gang("team/g", 3)
    for name in ("big-0", "big-1", "big-2"):
        world.pod("team", name, amounts(gpu=2), gang="team/g")
    world.pod("team", "small", amounts(gpu=1), gang="team/g", created=1)
    assert set(world.run()) == {"team/big-0", "team/big-1", "team/small"}


def test_a_gang_whose_pods_are_all_there_asks_for_them_and_no_more() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=2))
    world.quota("a", default_weight=1)
    world.pod("a", "x", amounts(gpu=2), node="n", preemptible=False)
    world.gang("a/early", 2, min_resources=amounts(gpu=4), quota="a")
    world.pod("a", "early-0", amounts(gpu=1), gang="a/early")
    world.run()
    (quota,) = world.engine.summarise()
    assert quota.request[GPU] == 2 + 4, "what is to come counts"
    world.pod("a", "early-1", amounts(gpu=1), gang="a/early")
    world.run()
    (quota,) = world.engine.summarise()
    assert quota.request[GPU] == 2 + 1 + 1


def test_a_gang_that_names_no_quota_asks_in_that_of_its_namespace() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=8))
    world.quota("a", default_weight=1)
    world.gang("a/early", 2, min_resources=amounts(gpu=4))
    world.run()
    (quota,) = world.engine.summarise()
    assert quota.request[GPU] == 4


def test_two_pods_of_a_gang_are_each_judged_by_their_own_quota() -> None:
    world = World()
    world.node("n", amounts(gpu=8))
    world.quota("a", amounts(gpu=4), amounts(gpu=4))
    world.quota("b", amounts(gpu=1), amounts(gpu=1))
    world.gang("a/g", 2)
    world.pod("a", "g-0", amounts(gpu=2), gang="a/g")
    world.pod("b", "g-1", amounts(gpu=2), gang="a/g")
    assert world.run() == {}
    assert world.told("a/g-0") == "quota b: max 1 nvidia.com/gpu, used 0, pod asks 2"


def test_a_pod_that_stands_in_is_judged_by_its_own_quota() -> None:
    """No node holds the gang's first pod; the other one's quota has no room for it."""
    world = World()
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=8), amounts(gpu=8))
    world.quota("b", (), amounts(gpu=0))
    world.gang("a/g", 1)
    world.pod("a", "big", amounts(gpu=8), gang="a/g", priority=1)
    world.pod("b", "small", amounts(gpu=1), gang="a/g")
    assert world.run() == {}


def test_a_gang_over_two_quotas_is_judged_anew_when_one_of_them_is_deleted() -> None:
    world = World()
    world.node("n", amounts(gpu=8))
    world.quota("a", amounts(gpu=4), amounts(gpu=4))
    world.quota("b", amounts(gpu=1), amounts(gpu=1))
    world.gang("a/g", 2)
    world.pod("a", "g-0", amounts(gpu=2), gang="a/g")
    world.pod("b", "g-1", amounts(gpu=2), gang="a/g")
    assert world.run() == {}
    world.apply(QuotaGone("b"))
    assert world.run() == {"a/g-0": "n", "b/g-1": "n"}


def test_a_gang_that_one_quota_refuses_does_not_block_a_gang_of_another_quota() -> None:
    """Both have a pod in quota a; the other pod of g is in b, which is full, that of h in c."""
    world = World()
    world.node("n", amounts(gpu=8))
    for name, bound in (("a", 4), ("b", 0), ("c", 4)):
        world.quota(name, amounts(gpu=bound), amounts(gpu=bound))
    for gang, other in (("g", "b"), ("h", "c")):
        world.gang(f"a/{gang}", 2)
        world.pod("a", f"{gang}-0", amounts(gpu=1), gang=f"a/{gang}")
        world.pod(other, f"{gang}-1", amounts(gpu=1), gang=f"a/{gang}")
    assert world.run() == {"a/h-0": "n", "c/h-1": "n"}


@pytest.mark.parametrize("never", ["g-0", "g-1"])
def test_whether_a_gang_may_preempt_does_not_depend_on_names(never: str) -> None:
    """One pod will do, and of the two one says `preemptionPolicy: Never`: the other preempts."""
    world = World("queues")
    world.node("n", amounts(gpu=1))
    world.quota("a", default_weight=1)
    world.pod("a", "low", amounts(gpu=1), node="n")
    world.gang("a/g", 1)
    for name in ("g-0", "g-1"):
        world.pod("a", name, amounts(gpu=1), gang="a/g", priority=10, preempts=name != never)
    other = "a/g-1" if never == "g-0" else "a/g-0"
    assert world.run() == {other: "n"}
    assert world.evicted() == ["a/low"]


def test_a_gang_with_a_pod_of_its_core_that_never_preempts_does_not() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=2))
    world.quota("a", default_weight=1)
    for name in ("low-0", "low-1"):
        world.pod("a", name, amounts(gpu=1), node="n")
    world.gang("a/g", 2)
    for name in ("g-0", "g-1"):
        world.pod("a", name, amounts(gpu=1), gang="a/g", priority=10, preempts=name == "g-0")
    assert world.run() == {}
    assert world.evicted() == []


def test_a_gang_that_loses_a_pod_of_its_core_says_how_many_leave() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=2))
    world.quota("a", default_weight=1)
    world.gang("a/g", 2)
    world.pod("a", "g-0", amounts(gpu=1), gang="a/g", node="n")
    world.pod("a", "g-1", amounts(gpu=1), gang="a/g", node="n", terminating=True)
    (gang,) = world.engine.gangs()
    assert (gang.phase, gang.running, gang.leaving) == ("Running", 2, 1)


def test_a_gang_without_a_quota_preempts_across_classes_of_nodes() -> None:
    """One class has room for two of its pods; of the other, one pod makes way."""
    world = World()
    world.node("large", amounts(gpu=2), node_class="80GB")
    world.node("small", amounts(gpu=3), node_class="40GB")
    for number in range(3):
        world.pod("x", f"x-{number}", amounts(gpu=1), node="small")
    world.gang("x/g", 3)
    charges = tuple((each, amounts(gpu=1, memory=size)) for each, size in _SIZES.items())
    more = {"priority": 5, "gang": "x/g", "shape": {"charges": charges}}
    for number in range(3):
        world.pod("x", f"p-{number}", amounts(gpu=1), **more)
    world.run()
    assert len(world.evicted()) == 1


_SIZES = {"": 32, "40GB": 40, "80GB": 80}
"""GB of the cards of a class of nodes."""


def test_the_parts_of_a_gang_share_what_is_left_in_the_quotas_above_them() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("b", amounts(gpu=1), amounts(gpu=1), is_parent=True)
    world.quota("bx", (), amounts(gpu=4), parent="b")
    world.quota("by", (), amounts(gpu=4), parent="b")
    world.gang("bx/gang", 2)
    world.pod("bx", "one", amounts(gpu=1), gang="bx/gang")
    world.pod("bx", "two", amounts(gpu=1), gang="bx/gang", quota="by")
    assert world.run() == {}


def test_a_gang_starts_once_its_queue_has_moved_from_below_a_closed_one() -> None:
    world = World("queues")
    world.node("n", amounts(gpu=4))
    world.quota("p", is_parent=True, closed=True, default_weight=1)
    world.quota("q", parent="p", default_weight=1)
    world.gang("q/gang", 2)
    for name in ("one", "two"):
        world.pod("q", name, amounts(gpu=1), gang="q/gang")
    assert world.run() == {}
    world.quota("q", default_weight=1)
    assert world.run() == {"q/one": "n", "q/two": "n"}
