"""Lets several pods wait as one claim, until gangs have objects of their own."""

from aliquot.engine.cycle import Engine
from aliquot.engine.model.events import PodSet
from aliquot.engine.model.pod import Pod
from aliquot.engine.queue.claim import Claim
from tests.build.engines import books


def gang(engine: Engine, *members: Pod) -> None:
    for member in members:
        engine.apply(PodSet(member))
        books(engine).waiting.remove(member.uid)
    asks = tuple(books(engine).placement.shape_ask(member.shape) for member in members)
    books(engine).waiting.add(Claim(members, asks, books(engine).tree.quota_of(members[0])))
