"""Gangs whose pods belong to several quotas, and gangs that start together.

They start, and preempt, for the whole of them or not at all.
"""

import pytest

from aliquot.engine.model.decisions import Evict, binds_and_evictions
from aliquot.engine.model.reasons import Reason
from tests.build.values import amounts
from tests.engine.world import World

_POLICIES = ("capacity", "fair", "hierarchy")
_AFTER_REVOKE = 121
"""Seconds after which `hierarchy` recycles what is above runtime."""
_FOR_PART = "makes way for {0}/g-{0}: priority 0 against 10"


def _two_nodes(policy: str = "capacity") -> World:
    world = World(policy)
    for node in ("m", "n"):
        world.node(node, amounts(gpu=2))
    return world


def _gang(world: World, **more: int) -> None:
    """A gang of one pod in quota a and one in b, of 2 GPUs each."""
    world.gang("a/g", 2)
    for team in ("a", "b"):
        world.pod(team, f"g-{team}", amounts(gpu=2), gang="a/g", created=5, **more)


def _borrowers(world: World, *nodes: str) -> None:
    for node in nodes:
        world.pod("c", f"on-{node}", amounts(gpu=2), node=node)


@pytest.mark.parametrize("policy", _POLICIES)
def test_each_quota_reclaims_for_its_part(policy: str) -> None:
    world = _two_nodes(policy)
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=4))
    _borrowers(world, "m", "n")
    _gang(world)
    started = world.run(0) | world.run(_AFTER_REVOKE)
    assert set(started) == {"a/g-a", "b/g-b"}
    assert world.evicted() == ["c/on-m", "c/on-n"]


@pytest.mark.parametrize("policy", _POLICIES)
def test_each_quota_preempts_its_own_pods_for_its_part(policy: str) -> None:
    """Also one that the first pod of the gang is not of: its message names the pod that is."""
    world = _two_nodes(policy)
    for team, node in (("a", "m"), ("b", "n")):
        world.quota(team, (), amounts(gpu=4))
        world.pod(team, "low", amounts(gpu=2), node=node)
    world.quota("c", amounts(gpu=4))
    _gang(world, priority=10)
    assert set(world.run()) == {"a/g-a", "b/g-b"}
    assert [(each.pod.path, each.reason, each.message) for each in world.evictions] == [
        (f"{team}/low", Reason.PREEMPTED_IN_QUOTA, _FOR_PART.format(team)) for team in "ab"
    ]


@pytest.mark.parametrize("policy", _POLICIES)
def test_pods_go_for_the_whole_or_not_at_all(policy: str) -> None:
    """Quota a is owed its 2 GPUs; b has no min, and what c has it may keep."""
    world = _two_nodes(policy)
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", (), amounts(gpu=4))
    world.quota("c", amounts(gpu=2), amounts(gpu=4))
    _borrowers(world, "m", "n")
    _gang(world)
    assert world.run(0) | world.run(_AFTER_REVOKE) == {}
    assert world.evicted() == []


def test_only_the_part_that_needs_victims_has_them() -> None:
    world = _two_nodes()
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("b", amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=4))
    _borrowers(world, "m")
    _gang(world)
    assert set(world.run()) == {"a/g-a", "b/g-b"}
    assert world.evicted() == ["c/on-m"]


def test_a_bound_that_two_quotas_have_in_common_counts_for_both_parts() -> None:
    world = World()
    world.node("n", amounts(gpu=8))
    world.quota("p", amounts(gpu=3), amounts(gpu=3))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=2), parent="p")
    _gang(world)
    assert world.run() == {}
    assert "quota p: max 3 nvidia.com/gpu, used 2, pod asks 2" in world.told("a/g-a")


def test_a_part_without_a_quota_preempts_its_like() -> None:
    world = _two_nodes()
    world.quota("a", amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=4))
    _borrowers(world, "m")
    world.pod("other", "low", amounts(gpu=2), node="n")
    _gang(world, priority=5)
    assert set(world.run()) == {"a/g-a", "b/g-b"}
    assert world.evicted() == ["c/on-m", "other/low"]


def test_surplus_of_one_gang_is_taken_once_and_its_core_whole() -> None:
    """Each part takes one pod of a gang of three; the gang can spare one and lives with two."""
    world = World()
    for node in ("l", "m", "n"):
        world.node(node, amounts(gpu=2))
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=6))
    world.gang("c/h", 2)
    for node in ("l", "m", "n"):
        world.pod("c", f"on-{node}", amounts(gpu=2), node=node, gang="c/h")
    _gang(world)
    assert set(world.run()) == {"a/g-a", "b/g-b"}
    assert world.evicted() == ["c/on-l", "c/on-m", "c/on-n"]


def test_one_pod_that_never_preempts_speaks_for_the_gang() -> None:
    world = _two_nodes()
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=4))
    _borrowers(world, "m", "n")
    world.gang("a/g", 2)
    for team in ("a", "b"):
        world.pod(team, f"g-{team}", amounts(gpu=2), gang="a/g", preempts=team == "a")
    assert world.run() == {}
    assert world.evicted() == []


def test_what_is_held_for_a_gang_over_two_quotas_waits_for_all_victims() -> None:
    world = _two_nodes()
    for team in ("a", "b"):
        world.quota(team, amounts(gpu=2), amounts(gpu=4))
    world.quota("c", (), amounts(gpu=4))
    _borrowers(world, "m", "n")
    _gang(world)
    evicted = [e.pod.path for e in binds_and_evictions(world.cycle()) if isinstance(e, Evict)]
    assert evicted == ["c/on-m", "c/on-n"]
    refusal = world.engine.why("a/g-a")
    assert refusal is not None
    assert refusal.reason is Reason.WAITING_FOR_VICTIMS
    assert world.run() == {}, "nothing more is evicted, and none starts before both are gone"
    world.gone("c/on-m")
    assert world.run() == {}
    world.gone("c/on-n")
    assert set(world.run()) == {"a/g-a", "b/g-b"}


def _group(world: World, *gangs: str) -> None:
    for gang in gangs:
        others = tuple(each for each in gangs if each != gang)
        world.gang(gang, 2, together=others)


def _pods(world: World, gang: str, count: int = 2) -> None:
    team, _, name = gang.partition("/")
    for index in range(count):
        world.pod(team, f"{name}-{index}", amounts(gpu=1), gang=gang)


def test_gangs_of_a_group_start_together() -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    _group(world, "a/g", "b/h")
    _pods(world, "a/g")
    assert world.run() == {}
    words = "gang b/h: 2 pods start together, 2 of them are missing"
    assert world.told("a/g-0") == f"{words}; gang a/g starts together with it"
    _pods(world, "b/h")
    assert set(world.run()) == {"a/g-0", "a/g-1", "b/h-0", "b/h-1"}


def test_a_group_starts_whole_or_not_at_all() -> None:
    world = World()
    world.node("n", amounts(gpu=3))
    _group(world, "a/g", "b/h")
    for gang in ("a/g", "b/h"):
        _pods(world, gang)
    assert world.run() == {}
    world.node("m", amounts(gpu=1))
    assert len(world.run()) == 4


def test_a_gang_waits_for_one_that_it_names_and_that_does_not_exist() -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    world.gang("a/g", 2, together=("b/h",))
    _pods(world, "a/g")
    assert world.run() == {}
    assert world.told("a/g-0") == "gang a/g starts together with gang b/h, which does not exist"
    world.gang("b/h", 2)
    _pods(world, "b/h")
    assert len(world.run()) == 4


def test_a_gang_that_is_named_waits_for_the_one_that_names_it() -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    world.gang("b/h", 2)
    world.gang("a/g", 2, together=("b/h",))
    _pods(world, "b/h")
    assert world.run() == {}
    world.gang("a/g", 2)
    assert set(world.run()) == {"b/h-0", "b/h-1"}


def test_a_gang_of_a_group_that_runs_is_not_waited_for_again() -> None:
    world = World()
    world.node("n", amounts(gpu=4))
    _group(world, "a/g", "b/h")
    for index in range(2):
        world.pod("a", f"g-{index}", amounts(gpu=1), gang="a/g", node="n")
    _pods(world, "b/h")
    assert set(world.run()) == {"b/h-0", "b/h-1"}


def test_surplus_of_a_group_starts_after_its_cores() -> None:
    world = World()
    world.node("n", amounts(gpu=5))
    _group(world, "a/g", "b/h")
    _pods(world, "a/g", 3)
    _pods(world, "b/h", 3)
    assert len(world.run()) == 5


def test_a_group_does_not_preempt_its_own_gangs() -> None:
    world = World()
    world.node("n", amounts(gpu=2))
    world.quota("a", amounts(gpu=2), amounts(gpu=2))
    world.quota("b", (), amounts(gpu=2))
    _group(world, "a/g", "b/h")
    for index in range(2):
        world.pod("b", f"h-{index}", amounts(gpu=1), gang="b/h", node="n")
    _pods(world, "a/g")
    assert world.run() == {}
    assert world.evicted() == []


def _full(world: World) -> None:
    """Two nodes; on one, a pod that ends."""
    world.node("m", amounts(gpu=2))
    world.node("n", amounts(gpu=2))
    world.pod("x", "runs", amounts(gpu=2), node="n")


def test_a_gang_that_keeps_room_has_what_it_finds_reserved() -> None:
    world = World()
    _full(world)
    world.gang("a/g", 2, keeps_room=True)
    for index in range(2):
        world.pod("a", f"g-{index}", amounts(gpu=2), gang="a/g")
    assert world.run() == {}
    assert "its gang keeps what it finds" in world.told("a/g-0")
    world.pod("z", "small", amounts(gpu=1), created=1)
    assert world.run() == {}


def test_a_gang_that_does_not_keep_room_is_passed() -> None:
    world = World()
    _full(world)
    world.gang("a/g", 2)
    for index in range(2):
        world.pod("a", f"g-{index}", amounts(gpu=2), gang="a/g")
    assert world.run() == {}
    world.pod("z", "small", amounts(gpu=1), created=1)
    assert set(world.run()) == {"z/small"}


def test_two_gangs_that_keep_room_do_not_wait_for_each_other_for_ever() -> None:
    """Each needs both nodes. One reservation a quota, and the first is served first."""
    world = World()
    _full(world)
    for gang in ("a/g", "a/h"):
        world.gang(gang, 2, keeps_room=True)
        for index in range(2):
            world.pod("a", f"{gang[2:]}-{index}", amounts(gpu=2), gang=gang)
    assert world.run() == {}
    world.gone("x/runs")
    assert len(world.run()) == 2
    for index in range(2):
        world.gone(f"a/g-{index}")
    assert set(world.run()) == {"a/h-0", "a/h-1"}
