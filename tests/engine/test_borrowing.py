"""Borrowing beyond the scenarios: groups that lend among themselves, and bounds without end."""

from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.reasons import Reason
from tests.build.values import amounts
from tests.engine.world import World


def why(world: World, path: str) -> Reason:
    refusal = world.engine.why(path)
    assert refusal is not None
    return refusal.reason


def test_a_group_borrows_from_all_only_what_it_takes_beyond_its_own() -> None:
    world = World("fair")
    world.node("n", amounts(gpu=9))
    world.quota("a", amounts(gpu=2), group="research")
    world.quota("b", amounts(gpu=2), group="research")
    world.quota("c", amounts(gpu=1))
    world.pod("a", "x", amounts(gpu=3), node="n")
    world.pod("a", "p", amounts(gpu=3))
    world.run()
    assert why(world, "a/p") is Reason.BORROWING_EXHAUSTED, "one of its own, and two of one"
    world.pod("a", "q", amounts(gpu=2))
    assert world.run() == {"a/q": "n"}, "one of its own, and one of one"


def test_a_guarantee_without_end_is_no_bound() -> None:
    """Where min is more than can be counted, room is what there is too little of."""
    world = World()
    world.node("n", amounts(memory=LIMIT))
    world.quota("a", amounts(memory=LIMIT))
    world.pod("a", "x", amounts(memory=LIMIT - 1), node="n")
    world.pod("a", "p", amounts(memory=LIMIT - 1))
    world.run()
    assert why(world, "a/p") is Reason.NO_NODE_FITS
