"""Pods that are not preemptible live within min or deserved, and shield no more than that."""

import pytest

from aliquot.engine.model.decisions import evictions
from aliquot.engine.model.events import BudgetSet, PodGone
from aliquot.engine.model.knobs import SECOND, EvictionKnobs, HierarchyKnobs
from aliquot.engine.model.pod import Budget
from aliquot.engine.model.reasons import Reason
from aliquot.engine.model.selector import Requirement
from tests.build.values import amounts
from tests.engine.world import World

MIN_POLICIES = ("capacity", "fair", "hierarchy")
POLICIES = (*MIN_POLICIES, "queues")
LATER = 1_000
"""Seconds after which recycling is due."""


def two_teams(policy: str, gpus: int = 8, **knobs: object) -> World:
    """Teams a and b are guaranteed half of the GPUs each, and may use all of them."""
    world = World(policy, **knobs)
    world.node("n", amounts(gpu=gpus))
    half = amounts(gpu=gpus // 2)
    bounds = {"default_weight": 1, "deserved": half} if policy == "queues" else {}
    for team in ("a", "b"):
        low = () if policy == "queues" else half
        world.quota(team, low, amounts(gpu=gpus), **bounds)
    return world


@pytest.mark.parametrize("policy", POLICIES)
def test_it_does_not_start_above_the_bound(policy: str) -> None:
    world = two_teams(policy)
    for number in range(6):
        world.pod("a", f"np-{number}", amounts(gpu=1), created=number, preemptible=False)
    assert sorted(world.run()) == [f"a/np-{number}" for number in range(4)]
    refusal = world.engine.why("a/np-4")
    assert refusal is not None
    assert refusal.reason is Reason.NON_PREEMPTIBLE_ABOVE_MIN
    assert refusal.resource == "nvidia.com/gpu"
    bound = "queue a: deserves" if policy == "queues" else "quota a: min"
    assert refusal.message.startswith(
        f"{bound} 4 nvidia.com/gpu, used by pods that are not preemptible 4, pod asks 1; "
        "beyond that only preemptible pods start"
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_it_starts_once_another_of_its_kind_is_gone(policy: str) -> None:
    world = two_teams(policy)
    for number in range(5):
        world.pod("a", f"np-{number}", amounts(gpu=1), created=number, preemptible=False)
    world.run()
    world.apply(PodGone("a/np-0"))
    assert list(world.run()) == ["a/np-4"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_counts_as_a_whole(policy: str) -> None:
    world = two_teams(policy)
    world.gang("a/g", 6)
    for number in range(6):
        world.pod("a", f"g-{number}", amounts(gpu=1), gang="a/g", preemptible=number > 0)
    assert world.run() == {}
    refusal = world.engine.why("a/g-0")
    assert refusal is not None
    assert refusal.reason is Reason.NON_PREEMPTIBLE_ABOVE_MIN


@pytest.mark.parametrize("policy", POLICIES)
def test_within_the_bound_preemptible_pods_go_in_its_place(policy: str) -> None:
    """They are older and more important, but borrowed: the others live within the bound."""
    world = two_teams(policy)
    for number in range(4):
        world.pod("a", f"p-{number}", amounts(gpu=1), node="n", priority=5)
    for number in range(4):
        world.pod("a", f"np-{number}", amounts(gpu=1), node="n", created=9, preemptible=False)
    for number in range(4):
        world.pod("b", f"p-{number}", amounts(gpu=1))
    world.run(0)
    world.run(LATER)
    assert world.evicted() == [f"a/p-{number}" for number in range(4)]


@pytest.mark.parametrize("policy", POLICIES)
def test_above_the_bound_it_is_no_shield(policy: str) -> None:
    """All eight came past the scheduler: by their nodes."""
    world = two_teams(policy)
    for number in range(8):
        world.pod("a", f"np-{number}", amounts(gpu=1), node="n", created=number, preemptible=False)
    for number in range(4):
        world.pod("b", f"p-{number}", amounts(gpu=1))
    world.run(0)
    world.run(LATER)
    assert world.evicted() == [f"a/np-{number}" for number in range(4, 8)]
    assert all(world.engine.booked_node(f"b/p-{number}") == "n" for number in range(4))


@pytest.mark.parametrize("policy", POLICIES)
def test_within_the_bound_it_is_never_a_victim(policy: str) -> None:
    world = two_teams(policy)
    for number in range(4):
        world.pod("a", f"np-{number}", amounts(gpu=1), node="n", preemptible=False)
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n")
    world.pod("a", "high", amounts(gpu=1), priority=100)
    world.pod("b", "more", amounts(gpu=1), priority=-5)
    world.run(0)
    world.run(LATER)
    assert not [each for each in world.evicted() if each.startswith("a/")]


@pytest.mark.parametrize("policy", MIN_POLICIES)
def test_lowering_min_exposes_what_is_above_it(policy: str) -> None:
    world = two_teams(policy)
    for number in range(4):
        world.pod("a", f"np-{number}", amounts(gpu=1), created=number, preemptible=False)
    assert len(world.run(0)) == 4
    world.quota("a", amounts(gpu=2), amounts(gpu=8))
    world.quota("b", amounts(gpu=6), amounts(gpu=8))
    world.pod("b", "p", amounts(gpu=6))
    world.run(0)
    world.run(LATER)
    assert world.evicted() == ["a/np-2", "a/np-3"]


@pytest.mark.parametrize("policy", POLICIES)
def test_one_word_in_a_gang_shields_no_gang_above_the_bound(policy: str) -> None:
    """The core came in by its nodes; a small pod joined it that may not be preempted."""
    world = two_teams(policy)
    world.gang("a/g", 8)
    for number in range(8):
        world.pod("a", f"g-{number}", amounts(gpu=1), node="n", gang="a/g")
    world.pod("a", "word", amounts(cpu=0), node="n", gang="a/g", preemptible=False)
    world.pod("b", "p", amounts(gpu=4))
    world.run(0)
    world.run(LATER)
    assert world.engine.booked_node("b/p") == "n"


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_a_quota_without_min_starts_none(policy: str) -> None:
    world = two_teams(policy)
    world.quota("c", (), amounts(gpu=8))
    world.pod("c", "np", amounts(gpu=1), preemptible=False)
    assert world.run() == {}
    refusal = world.engine.why("c/np")
    assert refusal is not None
    assert refusal.reason is Reason.NON_PREEMPTIBLE_ABOVE_MIN


@pytest.mark.parametrize("policy", ["capacity", "fair"])
def test_what_only_other_quotas_name_does_not_keep_it_from_starting(policy: str) -> None:
    world = World(policy)
    world.node("n", amounts(gpu=8, cpu=8000))
    world.quota("a", amounts(gpu=4))
    world.quota("b", amounts(cpu=4000))
    world.pod("a", "np", amounts(gpu=1, cpu=1000), preemptible=False)
    assert world.run() == {"a/np": "n"}


def test_without_a_quota_it_is_a_first_victim_where_such_pods_are() -> None:
    world = two_teams("capacity", eviction=EvictionKnobs(quotaless="lowest"))
    world.pod("other", "np", amounts(gpu=8), node="n", preemptible=False)
    world.pod("a", "p", amounts(gpu=1))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["other/np"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_above_max_goes_first_and_at_once(policy: str) -> None:
    """Team c has pods above its max, and important ones; a borrows no more than it may."""
    world = World(policy)
    world.node("n", amounts(gpu=12))
    bounds = {"default_weight": 1} if policy == "queues" else {}
    for team, high in (("a", 12), ("b", 12), ("c", 4)):
        fixed = {**bounds, "deserved": amounts(gpu=4)} if policy == "queues" else {}
        low = () if policy == "queues" else amounts(gpu=4)
        world.quota(team, low, amounts(gpu=high), **fixed)
    for number in range(6):
        world.pod("a", f"x-{number}", amounts(gpu=1), node="n", created=99)
    for number in range(6):
        world.pod("c", f"y-{number}", amounts(gpu=1), node="n", created=number, priority=7)
    world.pod("b", "p", amounts(gpu=2))
    assert world.run(0) == {"b/p": "n"}
    [first, second] = world.evictions
    assert world.evicted() == ["c/y-4", "c/y-5"]
    assert first.message == (
        "quota c uses 6 nvidia.com/gpu, max 4: what is above max goes first; "
        "b/p is owed what it asks for in quota b"
    )
    assert first.reason == second.reason


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_above_max_goes_for_a_claim_that_is_not_owed(policy: str) -> None:
    world = World(policy)
    world.node("n", amounts(gpu=8))
    fixed = {"default_weight": 1, "deserved": amounts(gpu=4)} if policy == "queues" else {}
    low = () if policy == "queues" else amounts(gpu=4)
    world.quota("a", low, amounts(gpu=8), **fixed)
    world.quota("c", low, amounts(gpu=2), **fixed)
    for number in range(4):
        world.pod("c", f"y-{number}", amounts(gpu=1), node="n")
        world.pod("a", f"x-{number}", amounts(gpu=1), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.run(0)
    assert world.evicted() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_is_evicted_with_its_pods_that_hold_nothing_of_what_is_short(policy: str) -> None:
    world = two_teams(policy)
    world.gang("a/g", 9)
    for number in range(8):
        world.pod("a", f"worker-{number}", amounts(gpu=1), node="n", gang="a/g")
    world.pod("a", "launcher", amounts(cpu=0), node="n", gang="a/g")
    world.pod("b", "p", amounts(gpu=4))
    world.run(0)
    world.run(LATER)
    assert world.engine.booked_node("b/p") == "n"
    assert len(world.evicted()) == 9


@pytest.mark.parametrize(("selector", "until"), [("x", 90), ("other", 40)])
def test_a_victim_is_waited_for_until_its_budget_has_been_respected(
    selector: str, until: int
) -> None:
    """Its grace period is 30 s; `holdFor` is shorter than `deleteAfter`, a minute."""
    world = two_teams("capacity", eviction=EvictionKnobs(hold_for=10 * SECOND))
    world.apply(BudgetSet(Budget("a", "pdb", 0, (Requirement("app", "In", (selector,)),))))
    for number in range(8):
        world.pod("a", f"p-{number}", amounts(gpu=1), node="n", labels=(("app", "x"),))
    world.pod("b", "claim", amounts(gpu=1))
    assert len(list(evictions(world.cycle(0)))) == 1
    assert world.engine.next_deadline() == until * SECOND


def test_it_is_not_recycled_for_what_its_quota_has_within_min() -> None:
    """Its runtime of GPUs is less than min, as the cluster is too small; its cpu is above min."""
    world = World("hierarchy", hierarchy=HierarchyKnobs(recycle="always"))
    world.node("n", amounts(gpu=2, cpu=8))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=2, cpu=8))
    world.pod("a", "np", amounts(gpu=2, cpu=1), node="n", preemptible=False)
    world.pod("b", "p", amounts(gpu=1))
    world.run(0)
    world.run(LATER)
    assert world.evicted() == []
