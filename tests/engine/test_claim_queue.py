"""The turn queue against a plain search over all claims at every step."""

import random
from dataclasses import dataclass
from typing import Any

from aliquot.engine.books.node_classes import NodeClasses
from aliquot.engine.columns import Resources
from aliquot.engine.model.pod import Pod
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


def _ask(one: Pod) -> Ask:
    resources = Resources()
    return Ask(one.shape, resources, "pack", NodeClasses(resources))


def lane_of(number: int, rng: random.Random) -> Lane:
    name = f"{rng.randrange(3)}-{rng.randrange(3)}-{number}"
    one = pod(name, (), "ns", created=rng.randrange(4))
    lane = Lane((number,))
    lane.add(Claim((one,), (_ask(one),), None))
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
        queue = TurnQueue(path, had.turn, lambda lane, claim: True)
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


def test_places_that_are_out_of_date_rank_no_group() -> None:
    """A group whose claims have turns of their own is ranked by its first that is still there.

    In group 0, a claim of a late turn has left its lane before it was tried: what is behind it
    comes before group 1, as if it had never been there.
    """
    turns = {"0-0-late": 2, "0-0-next": 0, "1-0-other": 1}
    queue = TurnQueue(
        path, lambda group, claim: turns[claim.pods[0].name], lambda lane, claim: lane.due is claim
    )
    late, behind, other = (
        Claim((one,), (_ask(one),), None)
        for one in (pod(name, (), "ns", created=age) for age, name in enumerate(turns))
    )
    for claim in (late, behind, other):
        lane = Lane((claim.uid,))
        lane.add(claim)
        lane.due = claim
        queue.push(lane, claim)
        if claim is late:
            lane.due = None  # its place stays behind in the queue
    queue.reorder()
    first = queue.first()
    assert first is not None
    assert first[1] is behind
