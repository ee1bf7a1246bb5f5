"""Which node a pod gets, beyond the scenarios."""

from tests.build.values import amounts
from tests.engine.world import World


def test_pods_without_gpus_keep_off_nodes_that_have_them() -> None:
    """Whatever else a node has that the pod does not ask for."""
    world = World()
    world.node("a", amounts(gpu=1, cpu=4000, memory=2**30))
    world.node("b", amounts(cpu=4000, memory=2**30))
    world.pod("team", "p", amounts(cpu=1000))
    world.pod("team", "q", amounts(gpu=1, cpu=1000))
    assert world.run() == {"team/p": "b", "team/q": "a"}
