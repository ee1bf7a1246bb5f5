"""Nodes that have a pod's images already are preferred, as kube-scheduler's ImageLocality does."""

from itertools import permutations
from typing import Any

import pytest

from aliquot.engine import (
    Event,
    NodeGone,
    NodeImagesSet,
    PlacementKnobs,
    PlacementWeights,
    PodGone,
    Taint,
)
from aliquot.errors import ArgumentError
from tests.build import values
from tests.build.values import amounts
from tests.engine.world import World

MIB = 2**20
A, B = "registry.example/a:1", "registry.example/b:latest"
OLD = Taint("old", "", "PreferNoSchedule")


def cluster(nodes: int = 4, weight: int = 1) -> World:
    """Nodes n1, n2 and so on, all alike: without images, n1 is the best."""
    weights = PlacementWeights(image_locality=weight)
    world = World(placement=PlacementKnobs(weights=weights))
    for number in range(1, nodes + 1):
        world.node(f"n{number}", amounts(cpu=4000))
    return world


def report(node: str, **sizes: int) -> NodeImagesSet:
    """What a kubelet reports: images `a` and `b` with their sizes in MiB."""
    names = {"a": A, "b": B}
    return NodeImagesSet(node, tuple((names[each], size * MIB) for each, size in sizes.items()))


def wait(world: World, *images: str, name: str = "p", **more: Any) -> str:
    return world.pod("team", name, amounts(cpu=1000), images=images, **more).uid


def points(world: World, uid: str) -> dict[str, int]:
    """By node, the points for images, where they make a difference."""
    found = world.engine.preferences(uid)
    return {node: each["ImageLocality"] for node, each in found.items() if "ImageLocality" in each}


def test_points_are_those_of_kube_scheduler() -> None:
    world = cluster()
    world.apply(report("n1", a=500, b=1000), report("n2", a=500))
    # a: 500 MiB, on 2 of 4 nodes: 250 MiB; of 23 to 1000 MiB that is (250 - 23) / 977
    one = wait(world, A, name="one")
    assert points(world, one) == {"n1": 23, "n2": 23, "n3": 0, "n4": 0}
    # b: 1000 MiB, on 1 of 4: 250 MiB more on n1; of 23 to 2000 MiB for two containers
    both = wait(world, B, A, name="both")
    assert points(world, both) == {"n1": 24, "n2": 11, "n3": 0, "n4": 0}
    twice = wait(world, A, A, name="twice")
    assert points(world, twice) == {"n1": 24, "n2": 24, "n3": 0, "n4": 0}


def test_points_are_bounded() -> None:
    world = cluster(1)
    world.apply(report("n1", a=23, b=5000))
    assert points(world, wait(world, A, name="small")) == {}
    assert points(world, wait(world, B, name="large")) == {"n1": 100}


def test_a_node_with_the_image_is_preferred_to_one_without() -> None:
    world = cluster()
    world.apply(report("n3", a=2000))
    wait(world, B, name="other")
    wait(world, name="none")
    assert world.run() == {"team/other": "n1", "team/none": "n1"}
    wait(world, A, name="mine")
    assert world.run() == {"team/mine": "n3"}


def test_every_pod_of_a_gang_prefers_its_own_images() -> None:
    world = cluster()
    world.gang("team/g", 2)
    world.apply(report("n3", a=2000), report("n4", b=2000))
    wait(world, A, name="x", gang="team/g")
    wait(world, B, name="y", gang="team/g")
    assert world.run() == {"team/x": "n3", "team/y": "n4"}


def test_where_nodes_with_the_image_are_full_a_pod_runs_elsewhere() -> None:
    world = cluster(2)
    world.apply(report("n2", a=2000))
    for number in range(5):
        wait(world, A, name=f"p{number}")
    started = world.run()
    assert sorted(started.values()) == ["n1", "n2", "n2", "n2", "n2"]


def test_a_weight_of_0_turns_it_off() -> None:
    world = cluster(weight=0)
    world.apply(report("n3", a=2000))
    wait(world, A)
    assert world.run() == {"team/p": "n1"}


def test_preferences_are_weighed_against_each_other() -> None:
    """A taint that is not tolerated costs 300 points, an image gives 25 at most on one of four."""
    world = cluster(3)
    taint = values.node_set("n4", amounts(cpu=4000), taints=(OLD,))
    world.apply(taint, report("n4", a=2000))
    wait(world, A)
    assert world.run() == {"team/p": "n1"}


def test_reports_of_images_are_no_change_of_the_nodes() -> None:
    world = cluster()
    wait(world, name="first")
    world.run()
    uid = wait(world, A)
    before = world.state.nodes.version, world.state.placement.version()
    assert points(world, uid) == {}
    world.apply(report("n2", a=2000))
    assert points(world, uid) == {"n1": 0, "n2": 48, "n3": 0, "n4": 0}
    world.apply(report("n2", b=2000))
    assert points(world, uid) == {}
    world.apply(report("n2", a=3000))
    assert points(world, uid)["n2"] == 74
    assert (world.state.nodes.version, world.state.placement.version()) == before
    assert world.run() == {"team/p": "n2"}


def test_a_waiting_pod_follows_what_is_reported_later() -> None:
    world = cluster(2)
    world.pod("team", "full-1", amounts(cpu=4000), node="n1")
    world.pod("team", "full-2", amounts(cpu=4000), node="n2")
    wait(world, A)
    assert world.run() == {}
    world.apply(report("n2", a=2000))
    for number in (1, 2):
        world.apply(PodGone(f"team/full-{number}"))
    assert world.run()["team/p"] == "n2"


def test_the_images_of_a_node_go_with_it() -> None:
    world = cluster(2)
    world.apply(report("n2", a=2000), NodeGone("n2"))
    assert world.state.node_images.held == {}
    world.node("n9", amounts(cpu=4000))  # in the same slot
    uid = wait(world, A)
    assert points(world, uid) == {}
    world.node("n2", amounts(cpu=4000))
    assert points(world, uid) == {}
    world.apply(report("n2", a=2000))
    assert points(world, uid) == {"n1": 0, "n2": 65, "n9": 0}


def test_the_order_of_events_does_not_matter() -> None:
    events: list[Event] = [
        values.node_set("n1", amounts(cpu=4000)),
        values.node_set("n2", amounts(cpu=4000)),
        report("n1", a=400),
        report("n2", a=900, b=700),
    ]
    found = []
    for order in permutations(events):
        world = World()
        world.apply(*order)
        found.append(points(world, wait(world, A, B)))
    assert found[0] == {"n1": 19, "n2": 62}
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("images", [[(A, 1)], ((A,),), ((A, "1"),), ((7, 1),), A, ((A, 1.5),)])
def test_images_that_make_no_sense_are_refused(images: Any) -> None:
    world = cluster()
    with pytest.raises(ArgumentError, match=r"NodeImagesSet\.images"):
        world.apply(NodeImagesSet("n1", images))
    assert world.state.node_images.held == {}
