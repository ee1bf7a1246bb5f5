"""The turn queue against a plain search over all claims at every step."""

import random
from dataclasses import dataclass
from typing import Any

from aliquot.engine.columns import Resources
from aliquot.engine.placement.ask import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group, TurnQueue
from aliquot.engine.queue.lane import Lane
from tests.build.values import pod


@dataclass
class Had:
    """What groups have had so far."""

    turns: dict[Group, int]

    def turn(self, group: Group, claim: Claim) -> Any:
        return self.turns.get(group, 0)


def path(claim: Claim) -> tuple[Group, ...]:
    namespace, job, _ = claim.pods[0].name.split("-")
    return (("namespace", namespace), ("job", namespace, job))


def lane_of(number: int, rng: random.Random) -> Lane:
    name = f"{rng.randrange(3)}-{rng.randrange(3)}-{number}"
    one = pod(name, (), "ns", created=rng.randrange(4))
    lane = Lane((number,))
    lane.add(Claim((one,), (Ask(one.shape, Resources(), "pack"),), None))
    return lane


def plain_first(claims: list[Claim], had: Had, depth: int = 0) -> Claim:
    """The first of the group whose turn it is, found by looking at every claim."""
    if depth == len(path(claims[0])):
        return min(claims, key=lambda claim: claim.key)
    groups: dict[Group, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(path(claim)[depth], []).append(claim)
    firsts = {group: plain_first(inside, had, depth + 1) for group, inside in groups.items()}
    turns = {group: (had.turn(group, first), first.key) for group, first in firsts.items()}
    return firsts[min(turns, key=lambda group: turns[group])]


def test_the_turn_is_that_of_the_group_that_has_had_least() -> None:
    for seed in range(150):
        rng, had = random.Random(seed), Had({})
        queue = TurnQueue(path, had.turn)
        lanes: list[Lane] = []
        for number in range(60):
            if rng.random() < 0.4 or not lanes:
                lane = lane_of(number, rng)
                head = lane.head
                assert head is not None
                lanes.append(lane)
                queue.push(lane, head)
            first = queue.first()
            assert first is not None
            lane, claim = first
            claims = [each for other in lanes if (each := other.head) is not None]
            assert claim is plain_first(claims, had), f"seed {seed}, step {number}"
            if rng.random() < 0.7:
                for group in path(claim):
                    had.turns[group] = had.turns.get(group, 0) + rng.randrange(3)
            if rng.random() < 0.5:
                lanes.remove(lane)
                queue.drop()
                if not lanes:
                    assert queue.first() is None
                    continue
            if rng.random() < 0.1:
                had.turns[("namespace", "0")] = 0
                queue.reorder()
