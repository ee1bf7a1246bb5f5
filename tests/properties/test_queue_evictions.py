"""Evictions between queues and inside them: each is needed."""

from hypothesis import given, settings

from aliquot.engine.model.decisions import Bind, Decision, Evict, binds_and_evictions
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from tests.build.engines import books
from tests.build.values import amounts
from tests.campaign import examples
from tests.properties.queue_world import Play, World, worlds


@settings(deadline=None, max_examples=examples(200))
@given(worlds())
def test_nobody_goes_for_a_claim_that_could_start_anyway(world: World) -> None:
    play = Play(world)
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        for _ in range(8):
            holds = bool(books(play.engine).ledger.holding)
            decisions = play.engine.cycle(play.now)
            if not holds:
                check_the_first(play, decisions)
            play.carry_out(decisions)


def check_the_first(play: Play, decisions: list[Decision]) -> None:
    """Until somebody goes, the rules know all there is; could the claimant start as things are?"""
    for decision in binds_and_evictions(decisions):
        match decision:
            case Bind(pod, host):
                play.started(pod, host)
            case Evict(_, claimant):
                assert claimant is not None
                assert not play.rules.may_start(claimant)
                return


def test_what_is_idle_goes_to_nobody_who_would_have_to_give_it_back_at_once() -> None:
    """Three queues share nine cards, and two cpus as 1, 1 and 0; each wants three and two."""
    names = "q", "r", "s"
    shape = Shape(amounts(cpu=2, gpu=3, pods=1))
    pods = [Pod(name, "x", name, shape, created=9 - i, quota=name) for i, name in enumerate(names)]
    nodes = (Node("n", amounts(cpu=2, gpu=9, pods=9)),)
    queues = tuple(Quota(name, default_weight=1, lend=False) for name in names)
    play = Play(World(nodes, queues, {}, (tuple(pods),)))
    for pod in pods:
        play.add(pod)
    play.to_rest()
    assert play.evictions == 0
