"""Which node a pod gets, beyond the scenarios."""

from dataclasses import replace
from random import Random

import pytest

from aliquot.engine import Engine, Knobs, PlacementKnobs, PodGone, PodSet
from aliquot.engine.model.knobs import ScoreMode
from tests.build import values
from tests.build.engines import books
from tests.build.values import amounts
from tests.engine.world import World

SIZES = (500, 1_500, 3_000)


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


@pytest.mark.parametrize("score", ["pack", "spread"])
def test_the_best_node_that_is_kept_in_mind_has_the_highest_score(score: ScoreMode) -> None:
    """Pods of three shapes come and go, so that the best node fills up, or another one empties."""
    made = Engine("capacity", Knobs(placement=PlacementKnobs(score=score)))
    rng, running = Random(1), list[str]()
    for number in range(30):
        made.apply(values.node_set(f"n-{number}", amounts(cpu=rng.choice((4_000, 8_000))), pods=9))
    placement = books(made).placement
    asks = [placement.shape_ask(values.pod("p", amounts(cpu=each), "a").shape) for each in SIZES]
    for number in range(400):
        for ask in rng.sample(asks, rng.randrange(3)):
            scores = placement.scores.of(ask).copy()
            best = int(scores.argmax())
            assert placement.scores.best(ask) == (best if scores[best] >= 0 else -1)
        if running and rng.random() < 0.45:
            made.apply(PodGone(running.pop(rng.randrange(len(running)))))
        pod = values.pod(f"p-{number}", amounts(cpu=rng.choice(SIZES)), "a")
        node = placement.pick(placement.shape_ask(pod.shape)) or f"n-{rng.randrange(30)}"
        made.apply(PodSet(replace(pod, node=node)))
        running.append(pod.uid)
