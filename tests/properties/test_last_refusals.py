"""What is refused without a trial is what a trial would refuse, word for word."""

from collections import Counter
from random import Random

import pytest

from aliquot.engine.holds.last_refusals import LastRefusals
from aliquot.engine.model.decisions import Bind, Decision
from tests.build.values import amounts
from tests.campaign import length
from tests.engine.world import World

_SIZES = ((0, 1), (0, 3), (1, 1), (1, 4), (2, 2), (4, 1))
"""GPUs and cpu: what is short differs from pod to pod."""

_MOST_CYCLES = 100
"""Two dozen claims are tried in some ten bounded cycles."""


def test_an_overfull_start_is_decided_as_with_a_trial_for_every_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = range(length(60, 3_000))
    told, found = Counter[bool](), LastRefusals.park_again

    def counted(refusals: LastRefusals, *args: object) -> bool:
        again = found(refusals, *args)  # type: ignore[arg-type]
        told[again] += 1
        return again

    monkeypatch.setattr(LastRefusals, "park_again", counted)
    decided = [_decided(seed) for seed in seeds]
    monkeypatch.setattr(LastRefusals, "park_again", lambda *_: False)
    monkeypatch.setattr(LastRefusals, "finds_no_victims", lambda *_: False)
    for seed, decisions in zip(seeds, decided, strict=True):
        assert decisions == _decided(seed), seed
    assert told[True] > len(seeds), "the clusters are too easy to say anything"


@pytest.mark.parametrize("lent", [6, 2])
def test_a_claim_above_min_in_one_resource_reclaims_another_that_it_lacks(lent: int) -> None:
    """It is not owed, as GPUs are short, too; but there are some on the node, which lacks cpu.

    With less min for c, all quotas together lack cpu as well.
    """
    world = World()
    world.node("n", amounts(gpu=8, cpu=8))
    world.quota("a", amounts(gpu=1, cpu=4))
    world.quota("b", amounts(gpu=4, cpu=2))
    world.quota("c", amounts(gpu=3, cpu=lent))
    world.pod("a", "first", amounts(gpu=1), node="n")
    for number in range(4):
        world.pod("b", f"p{number}", amounts(cpu=2), node="n", created=number)
    world.pod("c", "too-large", amounts(gpu=8))
    world.pod("a", "second", amounts(gpu=1, cpu=2))
    assert world.run() == {"a/second": "n"}
    assert world.evicted() == ["b/p3"]


def _decided(seed: int) -> list[list[Decision]]:
    """Pods of many quotas that are known at once, twice; every third cluster in bounded cycles.

    The second time, those that have started run.
    """
    rng = Random(seed)
    world = World(rng.choice(("capacity", "capacity", "fair")))
    nodes, quotas = rng.randint(1, 3), rng.randint(3, 6)
    for number in range(nodes):
        world.node(f"n{number}", amounts(gpu=8, cpu=16))
    for number in range(quotas):
        gpus, cpu = 8 * nodes // quotas, 16 * nodes // quotas
        low = rng.choice((amounts(gpu=gpus, cpu=cpu), amounts(gpu=gpus), amounts(gpu=gpus + 1)))
        high = rng.choice(((), amounts(gpu=2 * gpus), amounts(gpu=6 * gpus, cpu=2 * cpu)))
        world.quota(f"t{number}", low, high)
    decided = list[list[Decision]]()
    for moment in range(2):
        for number in range(rng.randint(10, 30) * nodes):
            team, (gpus, cpu) = f"t{rng.randrange(quotas)}", rng.choice(_SIZES)
            asks = amounts(gpu=gpus, cpu=cpu) if gpus else amounts(cpu=cpu)
            priority = rng.choice((0, 0, 0, 5))
            facts = {"priority": priority, "created": number // 4, "preemptible": number % 9 > 0}
            world.pod(team, f"{moment}-{number}", asks, **facts)
        bounded = seed % 3 == 0
        decided.append(world.engine.cycle(moment, bounded))
        while bounded and world.engine.unfinished:
            decided.append(world.engine.cycle(moment, bounded))
            assert len(decided) < _MOST_CYCLES, f"seed {seed}: nominations go round"
        for bind in (each for one in decided for each in one if isinstance(each, Bind)):
            world.bound(bind)
    return decided
