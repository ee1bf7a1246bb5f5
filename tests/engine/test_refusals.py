"""A pod refused for several reasons is told all of them, the first in full; and what it lacks."""

from dataclasses import replace

import pytest

from aliquot.engine.model.decisions import Wait, evictions
from aliquot.engine.model.events import BudgetSet, PodSet
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.model.pod import Budget
from aliquot.engine.model.reasons import Reason
from aliquot.engine.model.selector import Requirement
from tests.build.values import amounts
from tests.engine.world import World


def full(policy: str = "capacity") -> World:
    """Team a uses all that its max, the sum of min and the node have."""
    world = World(policy)
    world.node("n", amounts(gpu=4, cpu=8000))
    world.quota("a", amounts(gpu=4), amounts(gpu=4, cpu=8000))
    world.pod("a", "x", amounts(gpu=4, cpu=8000), node="n")
    return world


def test_every_gate_and_the_nodes_are_named_after_the_first_refusal() -> None:
    world = full()
    world.pod("a", "p", amounts(gpu=1, cpu=1000))
    world.run()
    assert world.told("a/p") == (
        "quota a: max 8 cpu, used 8, pod asks 1; also QuotaMaxExceeded (nvidia.com/gpu), "
        "BorrowingExhausted (nvidia.com/gpu), NoNodeFits (cpu)"
    )


def test_the_decision_says_what_is_said_when_asked() -> None:
    world = full()
    world.pod("a", "p", amounts(gpu=1, cpu=1000))
    (wait,) = (each for each in world.cycle() if isinstance(each, Wait))
    assert wait.refusal == world.engine.why("a/p")


def test_a_single_refusal_is_told_alone() -> None:
    world = full()
    world.node("m", amounts(gpu=4, cpu=8000))
    world.quota("b", amounts(gpu=4))
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.told("a/p") == "quota a: max 4 nvidia.com/gpu, used 4, pod asks 1"


def test_a_max_above_the_quota_is_named_with_its_quota() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=8))
    world.quota("org", amounts(gpu=4), amounts(gpu=4), is_parent=True, namespaces=frozenset())
    world.quota("a", amounts(gpu=4), amounts(gpu=4), parent="org")
    world.pod("a", "x", amounts(gpu=4), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.told("a/p") == (
        "quota a: max 4 nvidia.com/gpu, used 4, pod asks 1; "
        "also QuotaMaxExceeded (quota org, nvidia.com/gpu), RuntimeExceeded (nvidia.com/gpu)"
    )


def test_an_incomplete_gang_is_told_what_else_it_will_meet() -> None:
    world = full()
    world.gang("a/g", 2)
    world.pod("a", "g-0", amounts(gpu=1), gang="a/g")
    world.run()
    assert world.told("a/g-0") == (
        "gang a/g: 2 pods start together, 1 of them is missing; also QuotaMaxExceeded "
        "(nvidia.com/gpu), BorrowingExhausted (nvidia.com/gpu), NoNodeFits (nvidia.com/gpu)"
    )


def test_a_gated_pod_is_told_what_else_it_will_meet() -> None:
    world = full()
    world.pod("a", "p", amounts(gpu=1), gated=True)
    world.run()
    assert world.told("a/p").startswith("the pod has scheduling gates to be removed; also Quota")


def test_a_pod_that_is_being_deleted_is_told_only_that() -> None:
    world = full()
    world.pod("a", "p", amounts(gpu=1), terminating=True)
    world.run()
    assert world.told("a/p") == "the pod is being deleted"


def test_a_class_that_passes_the_gates_leaves_only_the_nodes() -> None:
    world = World()
    world.node("small", amounts(gpu=1), node_class="16")
    world.node("large", amounts(gpu=1), node_class="80")
    world.quota("a", amounts(memory=40), amounts(memory=40))
    world.pod("a", "x", amounts(gpu=1), node="small")
    charges = tuple((name, amounts(memory=int(name))) for name in ("16", "80"))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    world.run()
    assert "; also" not in world.told("a/p")


def test_of_classes_that_all_fail_each_refusal_is_named_once() -> None:
    world = World()
    world.node("small", amounts(gpu=1), node_class="16")
    world.node("large", amounts(gpu=1), node_class="80")
    world.quota("a", amounts(memory=8), amounts(memory=8))
    charges = tuple((name, amounts(memory=int(name))) for name in ("16", "80"))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    world.run()
    assert world.told("a/p") == (
        "quota a: max 8 memory, used 0, pod asks 16; also BorrowingExhausted (memory)"
    )


@pytest.mark.parametrize("gang", [None, "a/g"])
def test_never_is_named_where_preemption_would_help(gang: str | None) -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=4))
    world.quota("b", amounts(gpu=0))
    world.pod("b", "x", amounts(gpu=4), node="n")
    size = 1
    if gang is not None:
        world.gang(gang, 2)
        world.pod("a", "q", amounts(gpu=1), gang=gang)
        size = 2
    world.pod("a", "p", amounts(gpu=1), gang=gang, preempts=False)
    world.run()
    whose = "its" if size == 1 else "a/p's"
    words = f"; it could start in place of b/x, but {whose} preemptionPolicy is Never; also NoNode"
    assert words in world.told("a/p")


def test_never_is_not_named_where_preemption_would_not_help() -> None:
    world = full()
    world.pod("a", "p", amounts(gpu=1), preempts=False)
    world.run()
    assert "Never" not in world.told("a/p")


def test_many_victims_are_counted() -> None:
    world = World()
    world.node("n", amounts(gpu=5))
    world.quota("a", amounts(gpu=5))
    world.quota("b", amounts(gpu=0))
    for number in range(5):
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n")
    world.pod("a", "p", amounts(gpu=5), preempts=False)
    world.run()
    assert "in place of b/x-4, b/x-3, b/x-2 and 2 more, but" in world.told("a/p")


def budgeted(allowed: int) -> World:
    """Team a takes back its min from the pods of team b, of which a budget allows so many."""
    world = World()
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2))
    world.quota("b", amounts(gpu=0))
    selector = (Requirement("app", "In", ("b",)),)
    world.apply(BudgetSet(Budget("b", "pdb", allowed, selector)))
    for name in ("x", "y"):
        world.pod("b", name, amounts(gpu=1), node="n", labels=(("app", "b"),))
    world.pod("a", "p", amounts(gpu=2))
    world.evictions = list(evictions(world.cycle()))
    assert len(world.evictions) == 2
    world.cycle()
    return world


def test_a_budget_that_keeps_victims_from_leaving_is_named() -> None:
    world = budgeted(0)
    refusal = world.engine.why("a/p")
    assert refusal is not None
    assert refusal.reason is Reason.WAITING_FOR_VICTIMS
    assert refusal.message.endswith("; disruption budget b/pdb allows no eviction of b/y, b/x now")


def test_a_budget_that_allows_the_evictions_is_not_named() -> None:
    assert "budget" not in budgeted(2).told("a/p")


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_victim_is_told_that_its_budget_would_have_spared_it(allowed: int) -> None:
    messages = [each.message for each in budgeted(allowed).evictions]
    words = "; chosen although disruption budget b/pdb allowed no eviction"
    assert [each.endswith(words) for each in messages] == [allowed < 1, allowed < 2]


def test_a_victim_that_terminates_is_past_its_budget() -> None:
    world = budgeted(0)
    for uid in ("b/x", "b/y"):
        world.apply(PodSet(replace(world.state.pods[uid], terminating=True)))
    world.cycle()
    assert "budget" not in world.told("a/p")


def test_room_that_is_scattered_over_nodes_is_told_so() -> None:
    world = World()
    for name, free in (("m", 3), ("n", 2)):
        world.node(name, amounts(gpu=free))
    world.pod("a", "p", amounts(gpu=4))
    world.run()
    assert world.told("a/p") == (
        "0/2 nodes fit: 2 too little nvidia.com/gpu (asks 4, most free 3); "
        "it needs one node with 4 nvidia.com/gpu (most free on one node is 3)"
    )


def test_so_are_resources_that_no_one_node_has_together() -> None:
    world = World()
    world.node("cards", amounts(gpu=4, cpu=1000))
    world.node("cores", amounts(gpu=1, cpu=16000))
    world.pod("a", "p", amounts(gpu=2, cpu=8000))
    world.run()
    assert world.told("a/p").endswith(
        "; it needs one node with 8 cpu (most free on one node is 16) "
        "and 2 nvidia.com/gpu (most free on one node is 4)"
    )


def test_a_cluster_without_so_much_is_not_told_of_one_node() -> None:
    world = World()
    world.node("m", amounts(gpu=1))
    world.node("n", amounts(gpu=1))
    world.pod("a", "p", amounts(gpu=4))
    world.run()
    assert "one node" not in world.told("a/p")


def test_the_time_until_a_quota_gives_back_counts_down() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    world.pod("a", "x", amounts(gpu=4), node="n")
    world.pod("b", "p", amounts(gpu=2))
    world.run(0)
    for seconds, left in ((0, 120), (1, 119), (50, 70), (119, 1)):
        refusal = world.engine.why("b/p", seconds * SECOND)
        assert refusal is not None
        assert f"gives back in {left} s" in refusal.message
    assert "gives back in 120 s" in world.told("b/p"), "the time of the last cycle"
