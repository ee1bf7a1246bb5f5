"""Which node a pod gets, beyond the scenarios."""

from dataclasses import replace

from aliquot.engine import Engine, PodSet
from tests.build import values
from tests.build.engines import books
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


def test_scores_follow_however_many_nodes_have_changed_since_they_were_read() -> None:
    made = Engine("capacity")
    for number in range(300):
        made.apply(values.node_set(f"n-{number}", amounts(cpu=8_000), pods=10))
    placement = books(made).placement
    ask = placement.shape_ask(values.pod("p", amounts(cpu=1_000), "a").shape)
    for changed in (3, 200, 5, 300):
        placement.pick(ask)
        for number in range(changed):
            pod = values.pod(f"{changed}-{number}", amounts(cpu=1_500), "a")
            made.apply(PodSet(replace(pod, node=f"n-{number}")))
        followed = placement.scores.of(ask).copy()
        ask.drop_scores()
        assert (followed == placement.scores.of(ask)).all()
