"""Queues run to rest: namespaces without envy, no idle room, no circles, no matter of order."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.model.decisions import Bind
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.engines import books
from tests.build.values import GPU, amounts
from tests.campaign import examples
from tests.properties.queue_givers import could_make_way
from tests.properties.queue_rules import asks
from tests.properties.queue_world import NAMESPACES, Play, World, worlds

COUNTED = ("cpu", GPU)


@st.composite
def alike(draw: st.DrawFn) -> World:
    """Pods of one size, in one resource or two, in a few namespaces of a few flat queues."""
    size = amounts(gpu=draw(st.integers(1, 3)), cpu=draw(st.sampled_from((None, 1, 2))), pods=1)
    queues = []
    for name in ("q", "r", "s")[: draw(st.integers(1, 3))]:
        low = draw(st.sampled_from((None, None, 2, 4)))
        high = draw(st.sampled_from((None, None, 6, 9)))
        fixed = draw(st.sampled_from((None, None, None, 3)))
        weight = draw(st.integers(1, 4))
        queues.append(
            Quota(
                name,
                amounts(gpu=low),
                amounts(gpu=high),
                deserved=amounts(gpu=fixed),
                lend=False,
                default_weight=weight,
            )
        )
    pods = []
    for queue in queues:
        for namespace in NAMESPACES:
            for number in range(draw(st.integers(0, 7))):
                name = f"{queue.name}-{namespace}-{number}"
                created = draw(st.integers(0, 9))
                pod = Pod(name, namespace, name, Shape(size), created=created, quota=queue.name)
                pods.append(pod)
    nodes = tuple(
        Node(f"n{i}", amounts(cpu=draw(st.integers(2, 9)), gpu=draw(st.integers(2, 12)), pods=40))
        for i in range(draw(st.integers(1, 3)))
    )
    weights = {name: draw(st.integers(1, 4)) for name in NAMESPACES}
    return World(nodes, tuple(queues), weights, (tuple(pods),))


def share(play: Play, queue: str, namespace: str, less: Pod | None = None) -> Fraction:
    """The largest part of any resource that a namespace uses in a queue, less one of its pods."""
    pods = [p for p in play.rules.running if (p.quota, p.namespace) == (queue, namespace)]
    parts = [Fraction(0)]
    for resource in COUNTED:
        used = sum(asks(pod).get(resource, 0) for pod in pods)
        used -= asks(less).get(resource, 0) if less is not None else 0
        total = play.rules.total(resource)
        parts.append(Fraction(used, total) if total else Fraction(0))
    return max(parts)


@settings(deadline=None, max_examples=examples(60))
@given(alike())
def test_no_namespace_envies_another_by_more_than_one_pod(world: World) -> None:
    play = Play(world)
    for pod in world.waves[0]:
        play.add(pod)
    play.to_rest()
    if play.evictions:  # none is needed, but see test_queue_evictions
        return
    for waits in play.rules.waiting:
        mine = share(play, str(waits.quota), waits.namespace) / world.weights[waits.namespace]
        for pod in play.rules.running:
            if pod.quota == waits.quota and pod.namespace != waits.namespace:
                theirs = share(play, str(pod.quota), pod.namespace, pod)
                assert theirs / world.weights[pod.namespace] <= mine
        assert not play.rules.may_start(waits)


@settings(deadline=None, max_examples=examples(60))
@given(worlds())
def test_it_comes_to_rest_with_nothing_idle_that_somebody_could_use(world: World) -> None:
    """Owners put evicted pods back at once; all the same evictions end, and stay ended."""
    play = Play(world)
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        play.to_rest()
        for waits in play.rules.waiting:
            assert not play.rules.may_start(waits)
            assert play.engine.why(waits.uid) is not None
        before = play.evictions
        for claim in list(books(play.engine).waiting.claims()):  # nobody was forgotten to be asked
            books(play.engine).waiting.add(claim)
        play.to_rest()
        assert play.evictions == before


@st.composite
def rivals(draw: st.DrawFn) -> World:
    """One queue has the cluster to itself; then the others come."""
    queues = [
        Quota(
            name,
            amounts(gpu=draw(st.sampled_from((None, None, 1, 2)))),
            default_weight=draw(st.integers(1, 3)),
            deserved=amounts(gpu=draw(st.sampled_from((None, None, None, 2, 4)))),
            lend=False,
        )
        for name in ("q", "r", "s")
    ]
    waves: list[list[Pod]] = [[], []]
    for wave, names, most in ((0, ("q",), 9), (1, ("r", "s"), 3)):
        for number in range(draw(st.integers(1, most))):
            size = amounts(
                gpu=draw(st.integers(1, 2)), cpu=draw(st.sampled_from((None, 1))), pods=1
            )
            queue, namespace = draw(st.sampled_from(names)), draw(st.sampled_from(NAMESPACES))
            name = f"{wave}-{number}"
            priority = draw(st.sampled_from((0, 0, 10)))
            pod = Pod(name, namespace, name, Shape(size), priority=priority, quota=queue)
            waves[wave].append(pod)
    nodes = tuple(
        Node(f"n{i}", amounts(cpu=6, gpu=draw(st.integers(2, 5)), pods=40))
        for i in range(draw(st.integers(1, 2)))
    )
    return World(nodes, tuple(queues), {"x": 2}, tuple(map(tuple, waves)))


@settings(deadline=None, max_examples=examples(60))
@given(st.one_of(rivals(), rivals(), worlds()))
def test_at_rest_nobody_waits_for_what_is_deserved_while_others_use_more(world: World) -> None:
    """Who starts and who makes way goes by the same figures. Evicted pods do not come back."""
    play = Play(world, owners=False)
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        play.to_rest()
        for waits in play.rules.waiting:
            assert could_make_way(play.rules, waits) is None


@settings(deadline=None, max_examples=examples(60))
@given(worlds())
def test_whoever_starts_may_by_the_rules(world: World) -> None:
    """Within what is deserved, or of what is idle and guaranteed to nobody; within capability."""
    play = Play(world)
    for pod in world.waves[0]:
        play.add(pod)
    for decision in play.engine.cycle():
        if isinstance(decision, Bind):
            assert play.rules.may_start(decision.pod)
            play.started(decision.pod, decision.node)


@settings(deadline=None, max_examples=examples(50))
@given(worlds(), st.data())
def test_the_order_of_what_is_there_from_the_start_does_not_matter(
    world: World, data: st.DataObject
) -> None:
    tops = [queue for queue in world.queues if queue.parent is None]
    rest = [queue for queue in world.queues if queue.parent is not None]
    other = replace(
        world,
        nodes=tuple(data.draw(st.permutations(world.nodes))),
        queues=(*data.draw(st.permutations(tops)), *data.draw(st.permutations(rest))),
        weights=dict(data.draw(st.permutations(list(world.weights.items())))),
    )
    assert history(world) == history(world) == history(other)


def history(world: World) -> list[str]:
    play = Play(world)
    said = []
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        said += [repr(play.cycle()) for _ in range(6)]
    return said
