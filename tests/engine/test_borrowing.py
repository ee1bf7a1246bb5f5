"""Borrowing beyond the scenarios: groups that lend among themselves, and bounds without end."""

import numpy as np

from aliquot.engine import Taint
from aliquot.engine.columns import exact_sum
from aliquot.engine.model.knobs import CapacityKnobs, EvictionKnobs, FairKnobs
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.fair.guaranteed import GuaranteedShares
from tests.build.values import GPU, amounts
from tests.engine.world import World


def why(world: World, path: str) -> Reason:
    refusal = world.engine.why(path)
    assert refusal is not None
    return refusal.reason


def test_a_group_borrows_from_all_only_what_it_takes_beyond_its_own() -> None:
    world = World("fair")
    world.node("n", amounts(gpu=9))
    world.quota("a", amounts(gpu=2), group="research")
    world.quota("b", amounts(gpu=2), group="research")
    world.quota("c", amounts(gpu=1))
    world.pod("a", "x", amounts(gpu=3), node="n")
    world.pod("a", "p", amounts(gpu=3))
    world.run()
    assert why(world, "a/p") is Reason.BORROWING_EXHAUSTED, "one of its own, and two of one"
    world.pod("a", "q", amounts(gpu=2))
    assert world.run() == {"a/q": "n"}, "one of its own, and one of one"


def test_a_guarantee_without_end_is_no_bound() -> None:
    """Where min is more than can be counted, room is what there is too little of."""
    world = World()
    world.node("n", amounts(memory=LIMIT))
    world.quota("a", amounts(memory=LIMIT))
    world.pod("a", "x", amounts(memory=LIMIT - 1), node="n")
    world.pod("a", "p", amounts(memory=LIMIT - 1))
    world.run()
    assert why(world, "a/p") is Reason.NO_NODE_FITS


def test_sums_are_exact_however_large() -> None:
    assert exact_sum(np.array([2**40, 5])) == 2**40 + 5
    assert exact_sum(np.array([LIMIT] * 8)) == 8 * LIMIT


def test_min_that_a_pod_on_its_way_out_uses_is_idle() -> None:
    world = World("fair")
    world.node("n", amounts(gpu=8))
    for team, low in (("a", 2), ("b", 2), ("c", 4)):
        world.quota(team, amounts(gpu=low))
    world.pod("c", "x", amounts(gpu=2), node="n", terminating=True)
    row = world.state.resources.row(GPU)
    assert GuaranteedShares(world.state, row).guaranteed("a") == 2


def test_a_quota_at_its_guaranteed_share_keeps_its_pods() -> None:
    """They are the youngest, and still the quota that has more than its share gives."""
    world = World("fair")
    world.node("n", amounts(gpu=12))
    for team, low in (("a", 2), ("b", 2), ("c", 2), ("idle", 6)):
        world.quota(team, amounts(gpu=low))
    for team, count, created in (("a", 2, 0), ("b", 3, 100), ("c", 7, 50)):
        for number in range(count):
            world.pod(team, f"x-{number}", amounts(gpu=1), node="n", created=created + number)
    world.pod("a", "p", amounts(gpu=1), created=200)
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["c/x-6"]


def test_a_lowered_quota_loses_its_over_quota_pods_first() -> None:
    """By creation, not by priority, where the order of importance says so."""
    eviction, order = (
        EvictionKnobs(on_quota_lowered="evict"),
        FairKnobs(over_quota_order=("creation",)),
    )
    world = World("fair", eviction=eviction, fair=order)
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=1), amounts(gpu=2))
    world.quota("idle", amounts(gpu=1))
    world.pod("a", "old", amounts(gpu=1), node="n", created=0)
    world.pod("a", "young", amounts(gpu=1), node="n", created=1, priority=5)
    world.run()
    world.quota("a", amounts(gpu=1), amounts(gpu=1))
    world.run()
    assert world.evicted() == ["a/young"]


def test_the_message_names_what_the_giver_has_too_much_of() -> None:
    world = World()
    world.node("n", amounts(gpu=2, cpu=2000))
    world.quota("a", amounts(gpu=1, cpu=1000))
    for team in ("b", "c"):
        world.quota(team)
    world.pod("b", "x", amounts(gpu=2), node="n")
    world.pod("c", "x", amounts(cpu=2000), node="n")
    world.pod("a", "p", amounts(gpu=1, cpu=1000))
    world.run()
    told = {each.pod.path: each.message for each in world.evictions}
    assert "quota b uses 2, min 0" in told["b/x"]
    assert "quota c uses 2, min 0" in told["c/x"]
    assert "min 1 nvidia.com/gpu, used 0, pod asks 1" in told["b/x"]


def test_a_claim_takes_back_where_its_charge_is_within_its_min() -> None:
    """On the large node it would be charged too much, though the less important pod runs there."""
    world = World()
    charges = tuple((name, amounts(memory=int(name))) for name in ("16", "80"))
    for name, node_class, priority in (("small", "16", 0), ("large", "80", -1)):
        world.node(name, amounts(gpu=1), node_class=node_class)
        more = {"node": name, "priority": priority, "shape": {"charges": charges}}
        world.pod("b", f"on-{name}", amounts(gpu=1), **more)
    world.quota("a", amounts(memory=40), amounts(memory=40))
    world.quota("b")
    world.quota("idle", amounts(memory=200))
    world.pod("a", "p", amounts(gpu=1), shape={"charges": charges})
    assert world.run() == {"a/p": "small"}
    assert world.evicted() == ["b/on-small"]


def test_two_pods_of_a_gang_may_be_short_of_different_things_on_their_nodes() -> None:
    world = World()
    for name in ("n1", "n2"):
        world.node(name, amounts(gpu=1, cpu=1000))
    world.quota("a", amounts(gpu=2, cpu=2000))
    for team in ("b", "c"):
        world.quota(team)
    world.quota("idle", amounts(gpu=9, cpu=9000))
    world.pod("b", "x", amounts(gpu=1), node="n1")
    world.pod("c", "x", amounts(cpu=1000), node="n2")
    world.gang("a/g", 2)
    for number in range(2):
        world.pod("a", f"g-{number}", amounts(gpu=1, cpu=1000), gang="a/g")
    assert set(world.run()) == {"a/g-0", "a/g-1"}
    assert world.evicted() == ["b/x", "c/x"]


def test_the_runtime_of_a_quota_is_its_share_of_the_sum_of_min() -> None:
    world = World()
    world.node("n", amounts(gpu=8))
    world.quota("a", amounts(gpu=2))
    world.quota("b", amounts(gpu=4))
    world.pod("a", "x", amounts(gpu=5), node="n")
    runtimes = {each.name: each.runtime for each in world.engine.summarise()}
    assert runtimes == {"a": {"nvidia.com/gpu": 5}, "b": {"nvidia.com/gpu": 0}}


def test_only_guaranteed_resources_keep_a_claim_from_a_reservation() -> None:
    world = World()
    world.node("n", amounts(gpu=4, cpu=8))
    world.quota("a", amounts(gpu=2))
    world.pod("a", "fits", amounts(gpu=2, cpu=9))
    world.pod("a", "borrows", amounts(gpu=3, cpu=1))
    gates, claim = world.engine._policy.gates, world.state.waiting.claim
    assert gates.could_start(claim("a/fits"), None)
    assert not gates.could_start(claim("a/borrows"), None)


def test_nothing_is_free_of_a_resource_that_no_node_has() -> None:
    world = World(capacity=CapacityKnobs(borrow="freeCapacity"))
    world.node("n", amounts(cpu=4))
    world.quota("a", amounts(gpu=0))
    world.pod("a", "p", amounts(gpu=1))
    world.cycle()
    refusal = world.engine.why("a/p")
    assert refusal is not None
    assert refusal.reason is Reason.BORROWING_EXHAUSTED


def test_under_fair_a_pod_is_over_quota_in_any_guaranteed_resource() -> None:
    """Also in one that the claim is not short of: as its label says."""
    world = World("fair")
    world.node("n", amounts(gpu=3, cpu=16))
    world.quota("a", amounts(gpu=1))
    world.quota("c", amounts(gpu=2, cpu=1))
    world.pod("c", "x", amounts(gpu=1, cpu=8), node="n", created=1)
    world.pod("c", "y", amounts(gpu=2), node="n", created=2)
    world.pod("a", "p", amounts(gpu=1), created=3)
    world.run()
    assert world.evicted() == ["c/x"]


def pods_without_a_quota_go_first() -> World:
    knobs = {"capacity": CapacityKnobs("freeCapacity")}
    return World("capacity", eviction=EvictionKnobs(quotaless="lowest"), **knobs)


def test_what_a_pod_without_a_quota_frees_may_be_lent() -> None:
    """Room and right for the claim come free with it: no pod of a quota has to go as well."""
    world = pods_without_a_quota_go_first()
    world.node("n", amounts(gpu=1))
    world.node("m", amounts(gpu=3), taints=(Taint("not", "here", "NoSchedule"),))
    world.quota("a", amounts(gpu=2))
    world.quota("b", amounts(gpu=1))
    world.pod("none", "x", amounts(gpu=1), node="n")
    for number in range(3):
        world.pod("b", f"y-{number}", amounts(gpu=1), node="m")
    world.pod("a", "p", amounts(gpu=1))
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["none/x"]


def test_what_a_pod_without_a_quota_frees_need_not_be_given_up_in_the_claims_own_quota() -> None:
    world = pods_without_a_quota_go_first()
    world.node("n", amounts(gpu=4))
    world.node("m", amounts(gpu=3))
    world.quota("a", amounts(gpu=1))
    world.pod("none", "x", amounts(gpu=3), node="n")
    world.pod("a", "y", amounts(gpu=1), node="n")
    world.pod("a", "z", amounts(gpu=3), node="m")
    world.pod("a", "p", amounts(gpu=4), priority=10)
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["a/y", "none/x"]


def test_what_a_leaving_pod_without_a_quota_frees_is_lent_once_it_is_gone() -> None:
    world = pods_without_a_quota_go_first()
    world.node("n", amounts(gpu=4))
    world.quota("a", amounts(gpu=2))
    world.quota("b", amounts(gpu=1))
    world.pod("none", "x", amounts(gpu=1), node="n", terminating=True)
    for number in range(3):
        world.pod("b", f"y-{number}", amounts(gpu=1), node="n")
    world.pod("a", "p", amounts(gpu=1))
    world.run()
    assert world.evicted() == []


def test_a_claim_gives_up_what_its_group_borrows_not_what_all_do() -> None:
    """Two pods of its own quota, and the claim is within what its group lends itself.

    All quotas together are above the sum of min by more than that: c's pods were bound past us.
    """
    world = World()
    world.node("n", amounts(gpu=7))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=1), group="research")
    world.quota("c", amounts(gpu=1))
    for number in range(4):
        world.pod("c", f"x-{number}", amounts(gpu=1), node="n")
    for number in range(3):
        world.pod("a", f"y-{number}", amounts(gpu=1), node="n", created=number)
    world.pod("a", "p", amounts(gpu=1), priority=1)
    assert world.run() == {"a/p": "n"}
    assert world.evicted() == ["a/y-1", "a/y-2"]


def test_a_lowered_quota_gives_back_only_what_its_own_min_names() -> None:
    """Of anything else its pods may start beyond the sum of min: they would come back at once."""
    world = World(eviction=EvictionKnobs(on_quota_lowered="evict"))
    world.node("n", amounts(gpu=4, cpu=8))
    world.quota("named", amounts(cpu=2))
    world.quota("lowered", amounts(gpu=2))
    world.pod("lowered", "runs", amounts(gpu=1, cpu=3))
    assert world.run() == {"lowered/runs": "n"}
    world.quota("lowered", amounts(gpu=1))
    assert world.run() == {}
    assert world.evicted() == []
