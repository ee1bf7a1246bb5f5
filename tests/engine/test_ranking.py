"""The pods of a quota in the order of importance, and the distinct values of a column."""

from random import Random

import numpy as np
import pytest

from aliquot.engine.columns import distinct
from tests.build.values import amounts
from tests.engine.world import World


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
def test_pods_are_ranked_by_their_keys_those_that_are_not_preemptible_first(policy: str) -> None:
    rng, world = Random(1), World(policy)
    world.node("n", amounts(gpu=500))
    world.quota("a", amounts(gpu=4))
    for name in rng.sample(range(100), 60):
        facts = {"priority": rng.choice((0, 0, -5, 10)), "created": rng.randrange(4)}
        world.pod("a", f"p{name}", amounts(1), node="n", preemptible=rng.random() < 0.8, **facts)
    bound, slot = world.state.bound_pods, world.state.tree.slots["a"]
    pods = world.state.pods

    def in_order() -> list[str]:
        return sorted(
            (uid for uid in pods), key=lambda uid: (pods[uid].preemptible, bound.key(uid))
        )

    assert bound.ranked(slot) == in_order()
    world.gone(next(iter(pods)))
    world.pod("a", "p101", amounts(1), node="n", priority=0, created=2)
    assert bound.ranked(slot) == in_order()


@pytest.mark.parametrize("values", [[], [3], [3, 3], [5, -1, 5, 2, 2**62]])
def test_distinct_values_are_in_order(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
