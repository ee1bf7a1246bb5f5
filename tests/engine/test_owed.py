"""What quotas are owed and do not have, and how long their claims have been passed."""

import pytest

from aliquot.engine.model.knobs import SECOND
from tests.engine.world import World

GPU = "nvidia.com/gpu"


def owed(world: World) -> dict[str, int]:
    summaries = {each.name: each for each in world.engine.summarise()}
    return {quota: amounts[GPU] for quota, amounts in world.engine.owed(summaries).items()}


def test_only_as_much_is_owed_as_is_within_min() -> None:
    world = World()
    world.node("n", ((GPU, 2),))
    world.quota("a", ((GPU, 5),))
    for number in range(9):
        world.pod("a", f"p{number}", ((GPU, 1),))
    world.run()
    assert owed(world) == {"a": 3}, "five are guaranteed, two run; four more would borrow"


def test_claims_of_several_kinds_share_what_is_left_of_min() -> None:
    world = World()
    world.node("n", (("cpu", 1), (GPU, 8)))
    world.quota("a", ((GPU, 4),))
    world.pod("a", "large", (("cpu", 9), (GPU, 3)), priority=5)
    world.pod("a", "middle", (("cpu", 8), (GPU, 2)))
    world.pod("a", "small", (("cpu", 7), (GPU, 1)))
    world.run()
    assert owed(world) == {"a": 4}, "the large and the small one; the middle one would be above"


def test_nothing_is_owed_to_borrowers_nor_once_it_runs() -> None:
    world = World()
    world.node("n", ((GPU, 4),))
    world.quota("a", ((GPU, 2),))
    world.quota("b", ((GPU, 2),))
    for number in range(4):
        world.pod("a", f"p{number}", ((GPU, 1),))
    world.run()
    world.pod("a", "more", ((GPU, 1),))
    world.run()
    assert owed(world) == {}
    world.pod("b", "own", ((GPU, 2),))
    world.run()
    assert world.engine.booked_node("b/own") is not None
    assert owed(world) == {}


def test_what_waits_for_its_victims_is_still_owed() -> None:
    world = World()
    world.node("n", ((GPU, 2),))
    world.quota("a")
    world.quota("b", ((GPU, 2),))
    world.pod("a", "borrower", ((GPU, 2),))
    world.run()
    world.pod("b", "own", ((GPU, 2),))
    world.cycle()
    assert world.engine.booked_node("b/own") is not None, "room is held for it"
    assert owed(world) == {"b": 2}


@pytest.mark.parametrize("cause", ["gated", "missing"])
def test_a_claim_that_waits_for_itself_is_owed_nothing(cause: str) -> None:
    world = World()
    world.quota("a", ((GPU, 2),))
    if cause == "gated":
        world.pod("a", "p", ((GPU, 1),), gated=True)
    else:
        world.gang("a/g", 2)
        world.pod("a", "p", ((GPU, 1),), gang="a/g")
    world.run()
    assert owed(world) == {}


@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
def test_policies_of_shares_owe_the_share(policy: str) -> None:
    world = World(policy)
    world.node("n", ((GPU, 4),))
    for team in ("a", "b"):
        world.quota(team, (), ((GPU, 9),), weight=((GPU, 1),))
    for number in range(4):
        world.pod("a", f"p{number}", ((GPU, 1),))
    world.run()
    for number in range(3):
        world.pod("b", f"p{number}", ((GPU, 1),), preempts=False)
    world.pod("a", "more", ((GPU, 1),))
    world.cycle()
    assert owed(world) == {"b": 2}, "half of four is its share"


def test_who_is_guaranteed_nothing_is_owed_nothing() -> None:
    world = World("hierarchy")
    world.quota("a", (), (("cpu", 8),))
    world.pod("a", "p", ((GPU, 1),))
    world.run()
    assert owed(world) == {}


def test_a_gang_over_two_quotas_is_owed_by_both_or_none() -> None:
    world = World()
    world.node("n", ((GPU, 1),))
    world.quota("a", ((GPU, 2),))
    world.quota("b", ((GPU, 2),))
    world.gang("a/g", 2)
    world.pod("a", "one", ((GPU, 2),), gang="a/g")
    world.pod("b", "two", ((GPU, 1),), gang="a/g")
    world.run()
    assert owed(world) == {"a": 2, "b": 1}


def test_a_claim_is_passed_since_another_started_with_what_it_waits_for() -> None:
    world = World()
    world.node("n", ((GPU, 4),))
    world.quota("a", ((GPU, 9),))
    world.pod("a", "first", ((GPU, 3),))
    world.run(0)
    world.pod("a", "large", ((GPU, 2),), created=1)
    world.run(10)
    assert world.engine.passed_since() == {}
    world.pod("a", "small", ((GPU, 1),), created=2)
    world.run(20)
    assert world.engine.passed_since() == {"a": 20 * SECOND}
    world.run(50)
    assert world.engine.passed_since() == {"a": 20 * SECOND}
    world.gone("a/first")
    world.run(60)
    assert world.engine.passed_since() == {}


def test_a_pod_is_charged_what_its_quota_counts() -> None:
    world = World()
    world.node("n", ((GPU, 4),))
    world.quota("a", ((GPU, 4),))
    world.pod("a", "p", ((GPU, 3),))
    world.run()
    assert world.engine.charged("a/p")[GPU] == 3
