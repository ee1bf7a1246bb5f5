"""Gangs whose pods run near each other: in one domain of a level, such as a rack."""

from typing import Any

import pytest

from aliquot.engine import SECOND, Topology
from aliquot.engine.model.reasons import Reason
from aliquot.errors import ArgumentError
from tests.engine.world import World

GPU = "nvidia.com/gpu"
RACK, BLOCK = "example.com/rack", "example.com/block"


def racks(world: World, *sizes: int, gpus: int = 8, per_block: int = 2) -> None:
    """One node of so many GPUs for each place in a rack: r0-0, r0-1, r1-0..."""
    for rack, size in enumerate(sizes):
        for place in range(size):
            labels = ((RACK, f"r{rack}"), (BLOCK, f"b{rack // per_block}"))
            world.node(f"r{rack}-{place}", ((GPU, gpus),), labels=labels)


def gang(
    world: World, name: str, pods: int, topology: Topology, members: int = 0, **more: Any
) -> list[str]:
    world.gang(f"a/{name}", members or pods, topology=topology)
    paths = []
    for number in range(pods):
        pod = world.pod("a", f"{name}-{number}", ((GPU, 8),), gang=f"a/{name}", **more)
        paths.append(pod.path)
    return paths


def refusal(world: World, path: str) -> tuple[Reason, str]:
    found = world.engine.why(path)
    assert found is not None
    return found.reason, found.message


def test_a_gang_starts_in_the_fullest_rack_that_holds_it() -> None:
    world = World()
    racks(world, 4, 3, 2)
    gang(world, "g", 2, Topology((RACK,)))
    assert world.run() == {"a/g-0": "r2-0", "a/g-1": "r2-1"}
    gang(world, "h", 3, Topology((RACK,)))
    assert {node[:2] for node in world.run().values()} == {"r1"}


def test_a_gang_that_no_rack_holds_waits_and_is_told_how_many_fit_in_the_best() -> None:
    world = World()
    racks(world, 2, 3, 1)
    paths = gang(world, "g", 4, Topology((RACK,)))
    assert world.run() == {}
    reason, message = refusal(world, paths[0])
    assert reason is Reason.TOPOLOGY_UNSATISFIED
    assert f"all pods in one domain of {RACK}: the best of 3, r1, has room for 3 of 4" in message
    assert "all nodes together have for 4" in message
    world.node("r1-3", ((GPU, 8),), labels=((RACK, "r1"),))
    assert {node[:2] for node in world.run().values()} == {"r1"}


def test_a_gang_that_only_prefers_to_be_near_starts_in_the_narrowest_domain_or_anywhere() -> None:
    world = World()
    racks(world, 2, 3, 2, 2)
    levels = Topology((RACK, BLOCK), required=False)
    gang(world, "one-rack", 3, levels)
    assert {node[:2] for node in world.run().values()} == {"r1"}
    gang(world, "one-block", 4, levels)
    assert {node[:2] for node in world.run().values()} == {"r2", "r3"}
    gang(world, "anywhere", 2, levels)
    assert set(world.run().values()) == {"r0-0", "r0-1"}


def test_a_level_above_is_taken_only_as_far_as_it_is_allowed() -> None:
    world = World()
    racks(world, 2, 2, 2, 2)
    gang(world, "g", 3, Topology((RACK, BLOCK)))
    assert len({node[:2] for node in world.run().values()}) == 2
    paths = gang(world, "big", 5, Topology((RACK, BLOCK)))
    assert world.run() == {}
    assert (
        f"in one domain of {BLOCK}: the best of 2, b1, has room for 4"
        in refusal(world, paths[0])[1]
    )


def test_what_runs_of_a_gang_fixes_the_rack_for_the_pods_that_come_later() -> None:
    world = World()
    racks(world, 3, 4)
    gang(world, "g", 2, Topology((RACK,)))
    assert {node[:2] for node in world.run().values()} == {"r0"}
    for number in (2, 3):
        world.pod("a", f"late-{number}", ((GPU, 8),), gang="a/g")
    assert {node[:2] for node in world.run().values()} == {"r0"}
    (waiting,) = [p for p in ("a/late-2", "a/late-3") if world.state.pods[p].node is None]
    reason, message = refusal(world, waiting)
    assert reason is Reason.TOPOLOGY_UNSATISFIED
    assert "its running pods are in r0, which has room for 0 of 1" in message


def test_the_rack_with_room_for_all_of_a_gang_comes_before_one_with_room_for_its_core() -> None:
    world = World()
    racks(world, 2, 4)
    gang(world, "g", 4, Topology((RACK,)), members=2)
    assert {node[:2] for node in world.run().values()} == {"r1"}


def test_pods_of_several_shapes_are_in_one_rack() -> None:
    world = World()
    racks(world, 2, 2)
    world.pod("a", "small", ((GPU, 4),))
    assert world.run() == {"a/small": "r0-0"}
    world.gang("a/g", 3, topology=Topology((RACK,)))
    for number, asks in enumerate((8, 4, 4)):
        world.pod("a", f"g-{number}", ((GPU, asks),), gang="a/g")
    assert {node[:2] for node in world.run().values()} == {"r1"}


def test_a_gang_preempts_in_one_rack() -> None:
    world = World()
    racks(world, 2, 2, 2)
    for rack, places in ((0, (0, 1)), (1, (0,)), (2, (0, 1))):
        for place in places:
            world.pod("a", f"low-{rack}-{place}", ((GPU, 8),), priority=rack)
    where = world.run()
    by_node = {node: path for path, node in where.items()}
    gang(world, "g", 2, Topology((RACK,)), priority=10)
    started = world.run()
    racks_used = {node[:2] for path, node in started.items() if path.startswith("a/g")}
    assert len(racks_used) == 1
    (rack_used,) = racks_used
    evicted = {each.pod.path for each in world.evictions}
    assert evicted <= {path for node, path in by_node.items() if node.startswith(rack_used)}


def test_a_gang_takes_the_rack_where_the_fewest_must_go() -> None:
    world = World()
    racks(world, 2, 2)
    for name in ("x", "y", "z"):
        world.pod("a", name, ((GPU, 8),))
    world.run()
    gang(world, "g", 2, Topology((RACK,)), priority=10)
    world.run()
    assert len(world.evictions) == 1


def test_a_reservation_is_inside_one_rack() -> None:
    world = World()
    racks(world, 2, 2)
    for node, seconds in (("r0-0", 100), ("r0-1", None), ("r1-0", 300), ("r1-1", 400)):
        ends = {"endless": True} if seconds is None else {"expected_duration": seconds * SECOND}
        world.pod("a", f"on-{node}", ((GPU, 4),), node=node, **ends)
    paths = gang(world, "g", 2, Topology((RACK,)))
    world.run(0)
    world.pod("a", "small", ((GPU, 1),), created=SECOND)
    assert "a/small" in world.run(1)
    world.cycle(70)
    reason, message = refusal(world, paths[0])
    assert reason is Reason.RESERVED
    assert "reserved for it on r1-0, r1-1" in message
    world.node("r1-1", ((GPU, 8),), labels=((RACK, "r0"),))
    world.cycle(71)
    assert "reserved for it on r1-1, r0-0" in refusal(world, paths[0])[1]


def test_nodes_without_the_label_are_in_no_domain() -> None:
    world = World()
    for number in range(3):
        world.node(f"n{number}", ((GPU, 8),))
    paths = gang(world, "g", 2, Topology((RACK,)))
    assert world.run() == {}
    assert refusal(world, paths[0])[1].endswith(f"one domain of {RACK}: no node has this label")


def test_a_topology_without_levels_is_refused() -> None:
    with pytest.raises(ArgumentError, match="there are none"):
        Topology(())
