"""Lets several pods wait as one claim, until gangs have objects of their own."""

from aliquot.engine.cycle import Engine
from aliquot.engine.model.events import PodSet
from aliquot.engine.model.pod import Pod
from aliquot.engine.queue.claim import Claim


def gang(engine: Engine, *members: Pod) -> None:
    for member in members:
        engine.apply(PodSet(member))
        engine.state.waiting.remove(member.uid)
    asks = tuple(engine.state.placement.ask(member.shape) for member in members)
    engine.state.waiting.add(Claim(members, asks, engine.state.tree.quota_of(members[0])))
