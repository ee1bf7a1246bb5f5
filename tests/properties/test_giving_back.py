"""Queues give back in the order in which they start, read backwards: one order, both ways.

The rules are written once more here, from their words: which pod is the last in the order of turns
is found by comparing queues, then namespaces, then pods, with fractions, one eviction at a time.
"""

from dataclasses import replace
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aliquot.engine.model.decisions import Evict, binds_and_evictions
from aliquot.engine.model.events import GangSet
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.importance import importance
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.values import GPU, amounts
from tests.campaign import examples
from tests.properties.queue_rules import asks
from tests.properties.queue_world import Play, World

NAMESPACES = ("x", "y", "z")
RESOURCES = ("cpu", GPU, "pods")
MINE = "mine"


@st.composite
def crowded(draw: st.DrawFn, queues: int = 3) -> World:
    """Pods of one size fill the only node, in queues of all weights and priorities.

    The pods of the last wave are those of a queue that has nothing yet.
    """
    size = amounts(gpu=draw(st.integers(1, 2)), cpu=draw(st.sampled_from((None, 1, 2))), pods=1)
    names = ("q", "r", "s")[: draw(st.integers(1, queues))]
    tree = [
        Quota(
            name,
            default_weight=draw(st.integers(1, 3)),
            priority=draw(st.sampled_from((0, 0, 5))),
            lend=False,
        )
        for name in (*names, MINE)
    ]
    pods = []
    for number in range(draw(st.integers(3, 12))):
        queue, namespace = draw(st.sampled_from(names)), draw(st.sampled_from(NAMESPACES))
        priority, created = draw(st.sampled_from((0, 0, 7))), draw(st.integers(0, 5))
        name = f"w{number}"
        pod = Pod(name, namespace, name, Shape(size), priority, created, quota=queue)
        job = draw(st.sampled_from((None, None, "1", "2")))
        gang = None if job is None else f"{namespace}/{queue}-{job}"
        pods.append(replace(pod, gang=gang))
    claims = [
        Pod(f"m{number}", "m", f"m{number}", Shape(size), quota=MINE, created=9 + number)
        for number in range(draw(st.integers(1, 4)))
    ]
    has = {name: amount * len(pods) for name, amount in size}
    node = Node("n", amounts(gpu=has[GPU], cpu=has.get("cpu"), pods=has["pods"]))
    weights = {name: draw(st.integers(1, 3)) for name in NAMESPACES}
    return World((node,), tuple(tree), weights, (tuple(pods), tuple(claims)))


def filled(world: World, owners: bool = True) -> Play:
    """The cluster with all pods of the first wave running."""
    play = Play(world, owners)
    for gang in sorted({str(pod.gang) for pod in world.waves[0]} - {"None"}):
        play.engine.apply(GangSet(Gang(gang, 1, quota=gang.partition("/")[2][0])))
    for pod in world.waves[0]:
        play.add(replace(pod, node="n"))
    play.to_rest()
    assume(not play.evictions)
    return play


def use_of_deserved(play: Play, queue: str) -> Fraction | float:
    """The largest part of what a queue deserves that it uses, of any resource."""
    parts: list[Fraction | float] = [Fraction(0)]
    for resource in RESOURCES:
        used, share = play.rules.used(queue, resource), play.rules.deserved(resource)[queue]
        if used:
            parts.append(Fraction(used, share) if share else float("inf"))
    return max(parts)


def share(play: Play, world: World, queue: str, namespace: str) -> Fraction:
    """The dominant share over weight of a namespace in a queue."""
    pods = [p for p in play.rules.running if (p.quota, p.namespace) == (queue, namespace)]
    parts = [Fraction(0)]
    for resource in ("cpu", GPU):
        total = play.rules.total(resource)
        if total:
            parts.append(Fraction(sum(asks(pod).get(resource, 0) for pod in pods), total))
    return max(parts) / world.weights[namespace]


def job(play: Play, pod: Pod) -> tuple[bool, int]:
    """Is a pod one that its gang could lose, and how much has the gang in that case?"""
    gang = [each for each in play.rules.running if each.gang is not None and each.gang == pod.gang]
    surplus = any(importance(each) < importance(pod) for each in gang)
    return surplus, len(gang) if surplus else 0


def turn(play: Play, world: World, pod: Pod) -> tuple[object, ...]:
    """Where a pod is in the order of turns; the largest had the last one."""
    queue = play.rules.queues[str(pod.quota)]
    return (
        -queue.priority,
        use_of_deserved(play, queue.name),
        share(play, world, queue.name, pod.namespace),
        -pod.priority,
        *job(play, pod),
        pod.created,
    )


def could_give(play: Play) -> list[Pod]:
    """The pods of queues above deserved, of which the last in the order of turns is to go.

    Of those whose queue keeps all that it deserves even without them; else of those whose queue is
    above deserved in all that they hold; else in any of it.
    """
    others = [pod for pod in play.rules.running if pod.quota != MINE]
    spare: dict[str, list[tuple[int, int]]] = {}
    for pod in others:
        name = str(pod.quota)
        spare[pod.uid] = [
            (play.rules.used(name, resource) - play.rules.deserved(resource)[name], amount)
            for resource, amount in pod.shape.requests
        ]
    whole = [pod for pod in others if all(over >= amount for over, amount in spare[pod.uid])]
    part = [pod for pod in others if all(over > 0 for over, _ in spare[pod.uid])]
    some = [pod for pod in others if any(over > 0 for over, _ in spare[pod.uid])]
    return whole or part or some


@settings(deadline=None, max_examples=examples(150))
@given(crowded())
def test_a_victim_is_of_those_that_had_the_last_turn(world: World) -> None:
    """And of pods of one size one is enough, though owners put evicted pods back at once."""
    play = filled(world)
    for claim in world.waves[1]:
        play.add(claim)
        if any(play.rules.within_deserved(pod) for pod in play.rules.waiting if pod != claim):
            return  # shares of whole cards have moved, and an evicted pod is owed its place
        owed = play.rules.within_deserved(claim)
        givers = could_give(play)
        turns = {pod.uid: turn(play, world, pod) for pod in givers}
        decisions = play.engine.cycle(play.now)
        evicted = [each.pod for each in binds_and_evictions(decisions) if isinstance(each, Evict)]
        if not owed or not givers:
            assert evicted == []
        elif evicted:
            (victim,) = evicted
            assert turns[victim.uid] == max(turns.values())
        before = play.evictions + len(evicted)
        play.carry_out(decisions)
        play.to_rest()
        assert play.evictions == before


@settings(deadline=None, max_examples=examples(100))
@given(crowded(queues=1))
def test_what_was_given_back_starts_again_in_the_opposite_order(world: World) -> None:
    """Claims come and push pods of a queue out; they end, and the pods come back, last out first.

    Compared by how many pods namespaces of equal weight have, whichever of equals that is.
    """
    play = filled(replace(world, weights=dict.fromkeys(NAMESPACES, 1)))
    there = [counts(play)]
    for claim in world.waves[1]:
        play.add(claim)
        there += states(play)
    back = [counts(play)]
    claims = [*play.rules.waiting, *play.rules.running]
    for pod in [pod for pod in claims if pod.quota == MINE]:
        play.end(pod)
        back += states(play)
    assert back == there[::-1]


def counts(play: Play) -> list[int]:
    """How many pods run in each namespace beside the claims, in order of size."""
    running = [pod.namespace for pod in play.rules.running if pod.quota != MINE]
    return sorted(running.count(namespace) for namespace in NAMESPACES)


def states(play: Play) -> list[list[int]]:
    """These numbers after each change of them until rest."""
    found = [counts(play)]
    for _ in range(20):
        decisions = play.cycle()
        if counts(play) != found[-1]:
            found.append(counts(play))
        if not any(binds_and_evictions(decisions)):
            return found[1:]
    raise AssertionError("it never comes to rest")
