"""Evictions between queues and inside them: each is needed."""

import pytest
from hypothesis import Phase, given, settings

from aliquot.engine.decisions import Bind, Decision, Evict
from tests.properties.queue_world import Play, World, worlds


@pytest.mark.xfail(strict=True, reason="others are asked to go before idle room is looked at")
@settings(deadline=None, max_examples=200, phases=[Phase.generate])
@given(worlds())
def test_nobody_goes_for_a_claim_that_could_start_anyway(world: World) -> None:
    play = Play(world)
    for wave in world.waves:
        for pod in wave:
            play.add(pod)
        for _ in range(8):
            holds = bool(play.engine.state.ledger.holding)
            decisions = play.engine.cycle(play.now)
            if not holds:
                check_the_first(play, decisions)
            play.carry_out(decisions)


def check_the_first(play: Play, decisions: list[Decision]) -> None:
    """Until somebody goes, the rules know all there is; could the claimant start as things are?"""
    for decision in decisions:
        match decision:
            case Bind(pod, host):
                play.started(pod, host)
            case Evict(_, claimant):
                assert claimant is not None
                assert not play.rules.may_start(claimant)
                return
