"""What the books answer to those who read them."""

from dataclasses import replace

import numpy as np
import pytest

from aliquot.engine import Pod, Quota, Shape
from aliquot.engine.books.changes import Changes
from aliquot.engine.books.repeat_guard import RepeatGuard, fingerprint
from aliquot.engine.model.events import NodeGone, PodGone, PodSet, QuotaGone, QuotaSet
from aliquot.engine.model.knobs import FairKnobs
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.policies.over_quota import over_quota_pods
from aliquot.engine.reclaim.victim_set import PricedUnit, Requirements, choose, price
from aliquot.errors import TreeError
from tests.build.values import GPU, amounts
from tests.engine.world import World
from tests.properties.books import check_books


def crowd() -> World:
    """Five pods of one quota on one node: two of a lower priority, the others by age and name."""
    world = World()
    world.node("n", amounts(gpu=9))
    world.quota("a", amounts(gpu=9))
    ages = {"p-8": (0, 1), "p-9": (0, 2), "p-10": (0, 2), "low-1": (-1, 0), "low-2": (-1, 5)}
    for name, (priority, created) in ages.items():
        more = {"priority": priority, "created": created}
        world.pod("a", name, amounts(gpu=1), node="n", **more)
    return world


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, ["low-2"]),
        (2, ["low-1", "low-2"]),
        (3, ["low-1", "low-2", "p-10"]),
        (4, ["low-1", "low-2", "p-10", "p-9"]),
        (9, ["low-1", "low-2", "p-10", "p-8", "p-9"]),
    ],
)
def test_the_least_important_are_the_youngest_of_the_lowest_priority(
    most: int, expected: list[str]
) -> None:
    running = crowd().state.bound_pods
    found = running.least_important(np.array(running.node >= 0), most)
    assert sorted(str(running.slots.names[slot])[2:] for slot in found) == expected


def test_names_are_ordered_the_way_people_do() -> None:
    """Whatever else the order of importance looks at."""
    world = World("fair", fair=FairKnobs(over_quota_order=("name", "creation")))
    world.node("n", amounts(gpu=9))
    world.quota("a", amounts(gpu=9))
    for name in ("p-8", "p-9", "p-10"):
        world.pod("a", name, amounts(gpu=1), node="n")
    running = world.state.bound_pods
    assert running.name("a/p-8") < running.name("a/p-9") < running.name("a/p-10")


def test_a_quota_is_not_below_itself_nor_below_one_that_is_not_there() -> None:
    world = World("hierarchy")
    world.quota("top")
    world.quota("middle", parent="top")
    with pytest.raises(TreeError, match="its parent middle is its own child"):
        world.apply(QuotaSet(Quota("top", parent="middle")))
    with pytest.raises(TreeError, match="there is no parent quota elsewhere"):
        world.apply(QuotaSet(Quota("new", parent="elsewhere")))


def test_what_runs_after_a_move_is_what_runs_before_the_next() -> None:
    """So that a circle of moves comes back to where it began."""
    shape = Shape((("cpu", 1),))
    ours, theirs = Pod("a/p", "a", "p", shape), Pod("b/p", "b", "p", shape)
    repeat_guard = RepeatGuard(Changes())
    repeat_guard.present = fingerprint(ours, theirs)
    there = repeat_guard.move(fingerprint(ours), (ours,), (theirs,))
    back = repeat_guard.move(fingerprint(theirs), (theirs,), (ours,))
    assert there[2] == back[1]
    assert back[2] == there[1]
    repeat_guard.record(there)
    assert repeat_guard.repeats(there, owed=False)
    assert not repeat_guard.repeats(there, owed=True)
    assert not repeat_guard.repeats(back, owed=False)


def test_pods_on_their_way_out_are_not_asked_for_and_count_once() -> None:
    world = World()
    world.node("n", amounts(gpu=1))
    gone = world.pod("a", "p", amounts(gpu=1), node="n")
    assert world.state.repeat_guard.present == fingerprint(gone)
    for label in ("x", "y"):
        world.pod("a", "p", amounts(gpu=1), node="n", terminating=True, labels=(("app", label),))
        assert world.state.repeat_guard.present == 0


def test_only_a_pod_that_runs_can_be_resized() -> None:
    world = World()
    world.node("n", amounts(gpu=2))
    world.pod("a", "runs", amounts(gpu=1), node="n")
    waits = world.pod("a", "waits", amounts(gpu=9))
    world.run()
    assert world.engine.may_resize("a/runs", Shape(amounts(gpu=2))) is None
    with pytest.raises(ValueError, match="pod a/waits does not run"):
        world.engine.may_resize("a/waits", waits.shape)


def unit(name: str, priority: int, helps: int) -> PricedUnit:
    pods = [Pod(name, "a", name, Shape(()), priority=priority)]
    return price(pods, (name, name), {"room": helps}, {}, ((),))


def test_of_very_many_pods_those_are_put_back_that_are_not_needed_after_all() -> None:
    """The first one alone is not enough, and the second is enough without it."""
    least, enough = unit("least", 0, 1), unit("enough", 1, 3)
    many = [unit(f"p-{number}", 2, 1) for number in range(100)]
    assert choose([least, enough, *many], Requirements({"room": 3}, {})) == [enough]


def test_what_a_quota_will_get_back_is_exact_again_after_a_saturated_sum() -> None:
    world = World()
    world.node("n", amounts(memory=LIMIT))
    world.quota("a", amounts(memory=LIMIT))
    for name, memory in (("most", LIMIT - 1), ("some", 5)):
        world.pod("a", name, amounts(memory=memory), node="n", terminating=True)
    leaving, row = world.state.leaving.charge, world.state.resources.row("memory")
    slot = world.state.tree.slots["a"]
    assert leaving.get(row, slot) == LIMIT
    world.apply(PodGone("a/most"))
    assert leaving.get(row, slot) == 5


def test_of_several_fallback_quotas_the_first_by_name_takes_the_pods() -> None:
    world = World()
    for name in ("c", "a", "b"):
        world.quota(name, fallback=True)
    assert world.state.tree.membership.fallback == "a"
    world.apply(QuotaGone("a"))
    assert world.state.tree.membership.fallback == "b"


def test_a_pod_may_be_known_before_its_node() -> None:
    world = World()
    world.quota("a", amounts(gpu=1))
    world.pod("a", "p", amounts(gpu=1), node="later")
    world.node("later", amounts(gpu=1))
    world.pod("a", "q", amounts(gpu=1))
    assert world.run() == {}


def test_pods_of_a_quota_without_min_are_over_quota_where_another_names_the_resource() -> None:
    world = World("fair")
    world.node("n", amounts(gpu=3))
    world.quota("a", amounts(gpu=2))
    world.quota("b")
    world.pod("a", "x", amounts(gpu=1), node="n")
    world.pod("b", "x", amounts(gpu=1), node="n")
    assert over_quota_pods(world.state) == {"b/x"}


def test_where_even_all_of_very_many_pods_are_not_enough_there_is_no_set() -> None:
    assert (
        choose([unit(f"p-{n}", 0, 1) for n in range(100)], Requirements({"room": 101}, {})) is None
    )


def test_an_assumed_pod_that_names_another_quota_is_charged_there() -> None:
    """As it will be once its bind is confirmed."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=2))
    for name in ("a", "b"):
        world.quota(name, amounts(gpu=2))
    pod = world.pod("a", "p", amounts(gpu=1))
    world.cycle()
    world.apply(PodSet(replace(pod, quota="b")))
    assert {each.name: each.used[GPU] for each in world.engine.summarise()} == {"a": 0, "b": 1}


@pytest.mark.parametrize("deleted", [False, True])
def test_an_assumed_pod_that_moves_on_a_lost_node_is_leaving_the_quota_it_is_in(
    deleted: bool,
) -> None:
    """It names another quota; or its own is deleted, and the other one takes its pods."""
    world = World("hierarchy")
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2))
    world.quota("b", amounts(gpu=2), fallback=True)
    pod = world.pod("a", "p", amounts(gpu=1))
    world.cycle()
    world.apply(NodeGone("n"))
    world.cycle()
    world.apply(QuotaGone("a") if deleted else PodSet(replace(pod, quota="b")))
    check_books(world.engine)
