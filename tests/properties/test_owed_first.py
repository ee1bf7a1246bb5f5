"""Nothing is started that a waiting claim within min would take back at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.model.knobs import CapacityKnobs, FairKnobs
from aliquot.engine.model.reasons import Reason
from tests.build.values import amounts
from tests.campaign import examples
from tests.engine.world import World

TEAMS = tuple("abcdefgh")


@pytest.mark.parametrize("borrow", ["unusedMin", "freeCapacity"])
@pytest.mark.parametrize("policy", ["capacity", "fair"])
@settings(max_examples=examples(300))
@given(data=st.data())
def test_what_is_known_at_one_instant_starts_without_evictions(
    policy: str, borrow: str, data: st.DataObject
) -> None:
    """In each quota the larger claims come later: if its first one is not owed, none of them is.

    What `fair` takes back above min, for its fair sharing, is another rule.
    """
    draw = data.draw
    knobs = {"capacity": CapacityKnobs(borrow), "fair": FairKnobs(borrow)}  # type: ignore[arg-type]
    world = World(policy, **{policy: knobs[policy]})
    for number in range(draw(st.integers(1, 3))):
        world.node(f"n{number}", amounts(draw(st.integers(4, 12))))
    for team in TEAMS[: draw(st.integers(2, len(TEAMS)))]:
        world.quota(team, amounts(draw(st.integers(0, 6))))
        sizes = sorted(draw(st.lists(st.integers(1, 5), max_size=4)))
        times = sorted(draw(st.integers(0, 20)) for _ in sizes)
        for number, (asks, created) in enumerate(zip(sizes, times, strict=True)):
            world.pod(team, f"p{number}", amounts(asks), created=created)
    world.run(30)
    assert [each for each in world.evictions if each.reason is Reason.RECLAIMED_FOR_MIN] == []
