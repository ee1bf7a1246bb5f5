"""Trees of quotas beyond the scenarios: turns, recycling, and the own pods of a parent."""

from aliquot.engine import Budget, NodeConstraints, Requirement
from aliquot.engine.model.events import BudgetSet
from aliquot.engine.model.knobs import SECOND, EvictionKnobs, HierarchyKnobs
from aliquot.engine.model.reasons import Reason
from tests.build.values import GPU, amounts, node_set
from tests.engine.world import World


def test_quotas_take_turns_within_a_cycle() -> None:
    """There is room for two of four pods: one of each quota starts."""
    world = World("hierarchy")
    world.apply(node_set("n", 4, pods=2))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=4))
        world.pod(team, "p-0", amounts(gpu=1))
        world.pod(team, "p-1", amounts(gpu=1))
    assert set(world.run()) == {"a/p-0", "b/p-0"}


def above_runtime(*pods: str, **knobs: HierarchyKnobs) -> World:
    """Quota a runs pods of one GPU on all of them, until b asks for its half."""
    world = World("hierarchy", **knobs)
    world.node("n", amounts(gpu=len(pods)))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=len(pods) // 2), amounts(gpu=len(pods)))
    for number, name in enumerate(pods):
        world.pod("a", name, amounts(gpu=1), node="n", created=number)
    world.run(0)
    return world


def test_a_cycle_is_due_when_a_quota_has_been_above_its_runtime_for_long_enough() -> None:
    world = above_runtime("p-0", "p-1")
    assert world.engine.next_deadline() is None
    world.pod("b", "p", amounts(gpu=1))
    world.run(10)
    assert world.engine.next_deadline() == 130 * SECOND


def test_what_is_recycled_unasked_is_all_that_is_above_runtime_and_no_more() -> None:
    world = above_runtime("p-0", "p-1", hierarchy=HierarchyKnobs(recycle="always"))
    world.pod("b", "p", amounts(gpu=1))
    world.run(0)
    assert world.evicted() == []
    world.run(120)
    assert world.evicted() == ["a/p-1"]


def test_pods_whose_budget_is_spent_are_recycled_last() -> None:
    world = above_runtime("p-0", "guarded", hierarchy=HierarchyKnobs(recycle="always"))
    labels = (("app", "x"),)
    world.pod("a", "guarded", amounts(gpu=1), node="n", created=1, labels=labels)
    world.apply(BudgetSet(Budget("a", "x", 0, (Requirement("app", "In", ("x",)),))))
    world.pod("b", "p", amounts(gpu=1))
    world.run(0)
    world.run(120)
    assert world.evicted() == ["a/p-0"]
    assert world.evictions == []


def test_a_budget_that_allows_an_eviction_guards_no_pod() -> None:
    world = above_runtime("p-0", "young", hierarchy=HierarchyKnobs(recycle="always"))
    labels = (("app", "x"),)
    world.pod("a", "young", amounts(gpu=1), node="n", created=1, labels=labels)
    world.apply(BudgetSet(Budget("a", "x", 1, (Requirement("app", "In", ("x",)),))))
    world.pod("b", "p", amounts(gpu=1))
    world.run(0)
    world.run(120)
    assert world.evicted() == ["a/young"]


def test_the_own_pods_of_a_parent_live_within_what_it_has_not_promised() -> None:
    world = World("hierarchy", hierarchy=HierarchyKnobs(parent_pods="implicitChild"))
    world.node("n", amounts(gpu=8))
    world.quota("org", amounts(gpu=4), amounts(gpu=4), is_parent=True)
    world.quota("a", amounts(gpu=2), amounts(gpu=4), parent="org")
    world.pod("a", "x", amounts(gpu=2), node="n")
    world.pod("org", "x", amounts(gpu=2), node="n")
    world.pod("org", "p", amounts(gpu=1), preemptible=True)
    world.run()
    refusal = world.engine._policy.gates.gate(world.state.waiting.claim("org/p"), None)
    assert refusal is not None
    assert refusal.reason is Reason.RUNTIME_EXCEEDED
    assert refusal.message == "quota org: runtime 2 nvidia.com/gpu, used 2, pod asks 1"


def test_a_claim_that_the_max_of_a_parent_refuses_is_tried_when_its_sibling_gives_back() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=8))
    world.quota("org", amounts(gpu=2), amounts(gpu=2), is_parent=True, namespaces=frozenset())
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=1), amounts(gpu=2), parent="org")
    for number in range(2):
        world.pod("b", f"x-{number}", amounts(gpu=1), node="n", created=number)
    world.pod("a", "p", amounts(gpu=1))
    assert world.run(0) == {}
    assert world.told("a/p").startswith("quota org: max 2 nvidia.com/gpu, used 2, pod asks 1")
    assert world.run(120) == {"a/p": "n"}
    assert world.evicted() == ["b/x-1"]


def test_all_that_is_above_runtime_is_recycled_not_only_the_first_of_it() -> None:
    world = above_runtime(*(f"p-{n}" for n in range(4)), hierarchy=HierarchyKnobs(recycle="always"))
    world.pod("b", "p", amounts(gpu=2))
    world.run(0)
    world.run(120)
    assert world.evicted() == ["a/p-2", "a/p-3"]


def test_a_quota_asks_for_what_its_pod_is_charged_where_it_runs() -> None:
    """While it waits it counts with less than on the node that it gets."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=1, memory=200), node_class="80")
    world.quota("a", amounts(memory=100), amounts(memory=100))
    charges = (("", amounts(memory=16)), ("80", amounts(memory=80)))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    (before,) = world.engine.summarise()
    assert before.runtime["memory"] == 16
    assert world.run() == {"a/p": "n"}
    (after,) = world.engine.summarise()
    assert after.runtime["memory"] == 80


def test_what_is_held_is_told_apart_from_what_is_used() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=0), amounts(gpu=4))
    world.pod("a", "low", amounts(gpu=2), node="n")
    world.pod("a", "high", amounts(gpu=2), priority=1)
    world.cycle()
    assert world.state.waiting.claim("a/high").held
    world.pod("a", "more", amounts(gpu=1))
    refusal = world.engine._policy.gates.gate(world.state.waiting.claim("a/more"), None)
    assert refusal is not None
    told = "quota a: runtime 2 nvidia.com/gpu, used 2, held for others 2, pod asks 1"
    assert refusal.message == told


def test_what_quotas_inside_of_one_that_never_lends_keep_is_kept_once() -> None:
    """Of eight GPUs four are kept for the tree of org; d waits for a node that c has."""
    world = World("hierarchy")
    world.node("n1", amounts(gpu=6))
    world.node("n2", amounts(gpu=2), labels=(("zone", "x"),))
    everything = amounts(gpu=8)
    more = {"is_parent": True, "namespaces": frozenset()}
    world.quota("org", amounts(gpu=4), everything, lend=False, **more)
    world.quota("a", amounts(gpu=2), everything, lend=False, parent="org")
    world.quota("c", (), everything)
    world.quota("d", amounts(gpu=2), everything)
    world.pod("c", "x", amounts(gpu=2), node="n2", preemptible=False)
    only = {"constraints": NodeConstraints(selector=(("zone", "x"),))}
    world.pod("d", "p", amounts(gpu=2), shape=only)
    world.pod("c", "p", amounts(gpu=2))
    world.pod("c", "q", amounts(gpu=1))
    assert world.run() == {"c/p": "n1"}


def test_the_request_of_a_quota_that_does_not_lend_is_also_told_without_its_min() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=8))
    top = {"is_parent": True, "namespaces": frozenset()}
    world.quota("org", amounts(gpu=4), amounts(gpu=8), lend=False, **top)
    world.quota("a", amounts(gpu=2), amounts(gpu=3), parent="org")
    world.pod("a", "x", amounts(gpu=1), node="n")
    world.pod("a", "p", amounts(gpu=8))
    figures = {each.name: each for each in world.engine.summarise()}
    assert figures["org"].request[GPU] == 4
    asked = world.engine.child_requests(figures)
    assert figures["a"].request[GPU] == 9
    assert asked["org"][GPU] == 3, "as far as the max of its child"


def test_a_quota_that_does_not_lend_requests_its_min_at_least_also_without_children() -> None:
    """A leaf as a parent; what its own pods ask for is its child-request, as in Koordinator."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=8))
    top = {"is_parent": True, "namespaces": frozenset()}
    for name, lend in (("keeps", False), ("lends", True)):
        world.quota(name, amounts(gpu=4), amounts(gpu=8), lend=lend, **top)
        world.quota(f"{name}-a", amounts(gpu=3), amounts(gpu=3), parent=name, lend=False)
        world.quota(f"{name}-b", amounts(gpu=1), amounts(gpu=3), parent=name)
    world.pod("keeps-a", "p", amounts(gpu=1))
    world.pod("keeps-b", "p", amounts(gpu=5))
    figures = {each.name: each for each in world.engine.summarise()}
    asked = world.engine.child_requests(figures)
    found = {name: (each.request[GPU], asked[name][GPU]) for name, each in figures.items()}
    assert found == {
        "keeps": (6, 6),  # 3 of one child, 5 but no more than 3 of the other
        "keeps-a": (3, 1),
        "keeps-b": (5, 5),
        "lends": (3, 3),
        "lends-a": (3, 0),
        "lends-b": (0, 0),
    }


def test_in_an_idle_tree_nothing_is_scaled() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=12))
    top = {"is_parent": True, "namespaces": frozenset()}
    world.quota("org", amounts(gpu=8), amounts(gpu=12), **top)
    world.quota("team", amounts(gpu=6), amounts(gpu=12), parent="org", **top)
    world.quota("a", amounts(gpu=4), amounts(gpu=12), parent="team")
    world.quota("b", amounts(gpu=2), amounts(gpu=12), parent="team")

    def scaled() -> dict[str, int]:
        found = {each.name: each.scaled_min for each in world.engine.summarise()}
        return {name: low[GPU] for name, low in found.items() if low is not None}

    assert scaled() == {}
    world.pod("a", "p", amounts(gpu=1))
    world.pod("b", "p", amounts(gpu=1))
    assert world.run() == {"a/p": "n", "b/p": "n"}
    assert scaled() == {}, "they have what they ask for"
    world.quota("other", amounts(gpu=16), amounts(gpu=16))
    assert scaled() == {"org": 4, "team": 4, "a": 2, "b": 1, "other": 8}, "12 of 24"


def test_within_its_runtime_a_quota_makes_place_for_its_more_important_pods() -> None:
    """There is idle room, but it belongs to a quota that never lends."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4), lend=False)
    for number in range(2):
        world.pod("a", f"low-{number}", amounts(gpu=1), node="n", created=number)
    world.pod("a", "high", amounts(gpu=1), priority=1)
    assert world.run() == {"a/high": "n"}
    assert world.evicted() == ["a/low-1"]


def test_a_scaled_min_is_shown_only_where_it_is_less_than_min() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    assert [each.scaled_min for each in world.engine.summarise()] == [None, None]
    world.quota("c", amounts(gpu=4), amounts(gpu=4))
    assert [each.scaled_min for each in world.engine.summarise()] == [
        {"nvidia.com/gpu": 1},
        {"nvidia.com/gpu": 1},
        {"nvidia.com/gpu": 2},
    ]


def test_a_quota_outside_the_tree_takes_turns_with_one_that_uses_nothing() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=1))
    world.quota("system", unshared=True)
    world.quota("b", amounts(gpu=1), amounts(gpu=1))
    world.pod("b", "p", amounts(gpu=1))
    world.pod("system", "p", amounts(gpu=1), priority=1)
    assert list(world.run()) == ["system/p"]


def test_what_is_held_for_a_non_preemptible_pod_counts_against_the_next() -> None:
    world = World("hierarchy")
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2), amounts(gpu=8))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    world.pod("b", "x", amounts(gpu=2), node="n")
    world.pod("a", "low", amounts(gpu=2), node="n")
    world.pod("a", "high", amounts(gpu=2), priority=1, preemptible=False)
    world.cycle()
    assert world.state.waiting.claim("a/high").held
    world.pod("a", "more", amounts(gpu=1), preemptible=False)
    told = "quota a: min 2 nvidia.com/gpu, used by pods that are not preemptible 2, pod asks 1"
    told += "; beyond that only preemptible pods start"
    assert world.told("a/more") == f"{told}; also NoNodeFits (nvidia.com/gpu)"


def gang_with_a_pod_in_the_parent(members: int) -> World:
    """Of a gang's pods one is in a quota that takes pods, and one in its parent, which does not."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=8))
    world.quota("top", amounts(gpu=8), amounts(gpu=8), is_parent=True)
    world.quota("a", amounts(gpu=4), parent="top")
    world.gang("a/g", members)
    world.pod("a", "first", amounts(gpu=2), gang="a/g", priority=1)
    world.pod("a", "misplaced", amounts(gpu=3), gang="a/g", quota="top")
    return world


def requests(world: World) -> dict[str, int]:
    return {each.name: each.request.get(GPU, 0) for each in world.engine.summarise()}


def test_a_gangs_start_does_not_turn_pods_that_never_start_into_demand() -> None:
    """`misplaced` waits behind the core, then by itself, and is no demand then either."""
    world = gang_with_a_pod_in_the_parent(members=1)
    assert list(world.run()) == ["a/first"]
    assert requests(world) == {"a": 2, "top": 2}


def test_a_gang_that_never_starts_is_no_demand_in_any_of_its_quotas() -> None:
    """What its pod in the parent asks for is not taken off the demand of the other quota."""
    world = gang_with_a_pod_in_the_parent(members=2)
    world.pod("a", "other", amounts(gpu=5))
    world.run()
    assert requests(world)["top"] == 5


def test_no_pod_goes_for_a_claim_above_the_max_of_the_system_quota() -> None:
    """That quota has no runtime, but its max holds."""
    world = World("hierarchy", eviction=EvictionKnobs(quotaless="lowest"))
    world.node("n", amounts(gpu=2))
    world.quota("system", (), amounts(gpu=1), unshared=True)
    world.pod("none", "x", amounts(gpu=2), node="n")
    world.pod("system", "p", amounts(gpu=2))
    assert world.run() == {}
    assert world.evicted() == []
