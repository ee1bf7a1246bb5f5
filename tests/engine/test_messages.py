"""What waiting pods are told, word for word: the rule, the numbers, and nothing that is not so."""

from aliquot.engine import Taint
from aliquot.engine.model.decisions import evictions
from aliquot.engine.model.knobs import SECOND, CapacityKnobs, EvictionKnobs
from aliquot.engine.model.reasons import Reason
from tests.build.values import amounts
from tests.engine.world import World


def tree() -> World:
    """Four GPUs for a parent of two quotas and for one beside it, each guaranteed half of them."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("org", amounts(gpu=2), amounts(gpu=4), is_parent=True, namespaces=frozenset())
    world.quota("c", amounts(gpu=2), amounts(gpu=4))
    world.quota("a", amounts(gpu=1), amounts(gpu=4), parent="org")
    world.quota("b", amounts(gpu=1), amounts(gpu=4), parent="org")
    return world


def test_a_quota_above_is_named_with_the_one_below_it() -> None:
    world = tree()
    world.pod("a", "x", amounts(gpu=2), node="n")
    world.pod("c", "x", amounts(gpu=2), node="n")
    world.pod("b", "p", amounts(gpu=1))
    world.run()
    assert world.told("b/p").startswith(
        "quota org, above b: runtime 2 nvidia.com/gpu, used 2, pod asks 1"
    )


def test_an_own_quota_is_named_alone() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=2))
    world.pod("a", "x", amounts(gpu=2), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.told("a/p").startswith("quota a: max 2 nvidia.com/gpu, used 2, pod asks 1")


def test_pods_that_are_not_preemptible_are_told_what_others_like_them_use() -> None:
    world = tree()
    world.pod("a", "x", amounts(gpu=1), node="n")
    world.pod("a", "p", amounts(gpu=2), preemptible=False)
    world.run()
    assert world.told("a/p") == (
        "quota a: min 1 nvidia.com/gpu, used by pods that are not preemptible 0, pod asks 2; "
        "beyond that only preemptible pods start"
    )


def test_only_a_claim_within_its_runtime_is_told_which_quotas_will_give_back() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    world.pod("a", "x", amounts(gpu=4), node="n")
    world.pod("b", "p", amounts(gpu=2))
    world.pod("b", "q", amounts(gpu=3))
    world.run(0)
    words = "; quota a uses more than its runtime, and gives back in 120 s"
    assert world.told("b/p").endswith(words)
    assert words not in world.told("b/q")


def fair() -> World:
    """Teams a and b are guaranteed two GPUs each, c has four and uses none; b uses all of them.

    Its pod has just started, and is not evicted yet.
    """
    world = World("fair", eviction=EvictionKnobs(min_runtime=3600 * SECOND))
    world.node("n", amounts(gpu=8))
    for team, low in (("a", 2), ("b", 2), ("c", 4)):
        world.quota(team, amounts(gpu=low))
    return world


def test_a_claim_that_borrows_is_told_how_much_its_quota_may_take_back() -> None:
    world = fair()
    world.pod("b", "x", amounts(gpu=8), node="n")
    world.pod("a", "p", amounts(gpu=5))
    world.run()
    assert world.told("a/p") == (
        "all quotas together: sum of min 8 nvidia.com/gpu, used 8, pod asks 5; it waits until "
        "enough is given back; its quota may take back up to 3 nvidia.com/gpu "
        "(min 2 and 1 of what is idle); also NoNodeFits (nvidia.com/gpu)"
    )


def test_a_claim_that_asks_for_no_more_than_that_is_not_told() -> None:
    world = fair()
    world.pod("b", "x", amounts(gpu=8), node="n")
    world.pod("a", "p", amounts(gpu=3))
    world.run()
    assert world.told("a/p") == (
        "all quotas together: sum of min 8 nvidia.com/gpu, used 8, pod asks 3; it waits until "
        "enough is given back; also NoNodeFits (nvidia.com/gpu)"
    )


def test_a_claim_that_asks_for_more_than_all_guarantees_is_not_told_to_wait() -> None:
    world = fair()
    world.pod("a", "p", amounts(gpu=9))
    world.run()
    assert world.told("a/p").startswith(
        "all quotas together: sum of min 8 nvidia.com/gpu, used 0, pod asks 9; that is more than "
        "all of it, whatever is given back"
    )


def test_what_is_held_for_others_is_told_apart_from_what_is_used() -> None:
    world = World("capacity")
    world.node("n", amounts(gpu=8))
    world.quota("a", amounts(gpu=4))
    world.quota("b", amounts(gpu=0))
    world.pod("b", "x", amounts(gpu=2), node="n", priority=1)
    world.pod("b", "y", amounts(gpu=2), node="n")
    world.pod("a", "p", amounts(gpu=2))
    decisions = world.cycle()
    assert [each.pod.path for each in evictions(decisions)] == ["b/y"]
    world.pod("b", "z", amounts(gpu=1))
    world.cycle()
    assert world.told("b/z") == (
        "all quotas together: sum of min 4 nvidia.com/gpu, used 4, held for others 2, pod asks 1; "
        "it waits until enough is given back"
    )


def test_more_disliked_than_can_be_counted_is_still_not_barred() -> None:
    world = World()
    taints = tuple(Taint(f"t{number}", "", "PreferNoSchedule") for number in range(20))
    world.node("n", amounts(gpu=1), taints=taints, node_class="big")
    charges = {"charges": (("big", amounts(gpu=1)),)}
    world.quota("a", amounts(gpu=1))
    world.pod("a", "p", amounts(gpu=1), shape=charges)
    assert world.run() == {"a/p": "n"}


def lowered(low: int, most: int) -> str:
    """Team a uses four GPUs when its bounds become these; the words of whom it loses."""
    world = World(eviction=EvictionKnobs(on_quota_lowered="evict"))
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=4), amounts(gpu=4))
    for number in range(4):
        world.pod("a", f"x-{number}", amounts(gpu=1), node="n", created=number)
    world.run()
    world.quota("a", amounts(gpu=low), amounts(gpu=most))
    world.run()
    (gone,) = world.evictions
    assert gone.pod.name == "x-3"
    assert gone.reason is Reason.QUOTA_LOWERED
    return gone.message


def test_a_lowered_bound_is_named() -> None:
    assert lowered(3, 3) == "quota a: max 3 nvidia.com/gpu, used 4"
    together = "all quotas together: sum of min 3 nvidia.com/gpu, used 4"
    assert lowered(3, 4) == together


def test_where_one_class_of_nodes_is_full_it_is_told_why_another_will_not_do() -> None:
    world = World()
    world.node("small", amounts(gpu=1), node_class="16")
    world.node("large", amounts(gpu=1), node_class="80")
    world.quota("a", amounts(memory=40), amounts(memory=40))
    world.pod("a", "x", amounts(gpu=1), node="small")
    charges = tuple((name, amounts(memory=int(name))) for name in ("16", "80"))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    world.run()
    assert world.told("a/p") == (
        "0/2 nodes fit: 1 too little nvidia.com/gpu (asks 1, most free 0); "
        "of nodes of another class it is too much: quota a: max 40 memory, used 0, pod asks 80"
    )


def test_where_free_capacity_is_lent_the_bound_is_named_so() -> None:
    world = World(capacity=CapacityKnobs(borrow="freeCapacity"))
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=1))
    world.pod("a", "x", amounts(gpu=4), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.told("a/p").startswith(
        "all quotas together: guaranteed or free 4 nvidia.com/gpu, used 4, pod asks 1"
    )
