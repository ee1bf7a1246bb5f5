"""The brake: never more evictions in a minute than it allows, and every claim still starts."""

from itertools import groupby

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from aliquot.dialects import configuration
from aliquot.dialects.core.documents import Document
from aliquot.engine import EvictionKnobs, EvictionsPaused, EvictionsResumed, Reason
from aliquot.engine.model.knobs import SECOND
from aliquot.errors import InputError
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation.inputs import collect
from tests.build.values import GPU
from tests.campaign import examples
from tests.properties.busy_clusters import configurations, dumps
from tests.properties.passing_time import Clockwork, arrival

MINUTE = 60


def fits(evictions: list[tuple[float, str]], limit: int) -> bool:
    """At most so many in any minute; or all of it for one claim, or of one gang."""
    for at, _ in evictions:
        within = [each for each in evictions if at <= each[0] < at + MINUTE]
        if len(within) > limit and len(set(within)) > 1:
            return False
    return True


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
@settings(max_examples=examples(100))
@given(data=st.data(), limit=st.integers(1, 3))
def test_no_minute_has_more_evictions_than_the_brake_allows(
    policy: str, data: st.DataObject, limit: int
) -> None:
    body = data.draw(configurations())
    body["eviction"] |= {"maxPerMinute": limit, "maxShare": 0}
    written = configuration.read(Document("configuration", body))
    documents = [Document(f"{at}", each) for at, each in enumerate(data.draw(dumps(policy)))]
    try:
        inputs = collect(documents, written)
    except InputError:
        reject()
    simulation = Simulation(inputs, policy, configuration.knobs(written))
    simulation.run()
    made = [
        (each["at"], each["for"] or each["pod"].rpartition("-")[0])
        for each in outcome(simulation)["evictions"]
        if each["reason"] != Reason.NODE_LOST
    ]
    assert fits(made, limit), made


CLAIMS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8
)


@pytest.mark.parametrize("policy", ["capacity", "fair"])
@settings(max_examples=examples(100), deadline=None)
@given(
    claims=CLAIMS,
    limit=st.integers(0, 3),
    share=st.sampled_from([0, 10, 40]),
    paused=st.none() | st.tuples(st.integers(0, 200), st.integers(1, 300)),
)
def test_every_owed_claim_starts_in_the_end(
    policy: str,
    claims: list[tuple[int, int, int]],
    limit: int,
    share: int,
    paused: tuple[int, int] | None,
) -> None:
    total = sum(size for _, size, _ in claims)
    knobs = EvictionKnobs(max_per_minute=limit, max_share=share)
    world = Clockwork(policy, eviction=knobs)
    world.node("n", ((GPU, total),))
    world.quota("owner", ((GPU, total),))
    world.quota("borrower")
    world.expect(arrival(0, "borrower", f"b{each}", ((GPU, 1),)) for each in range(total))
    while world.step(0):
        pass
    later = sorted(claims)
    world.expect(
        arrival(at + 1, "owner", f"o{each}", ((GPU, size),), priority=priority)
        for each, (at, size, priority) in enumerate(later)
    )
    at_second: list[tuple[float, str]] = []
    while world.step(10_000):
        if paused is not None:
            begin, lasts = paused
            if begin <= world.second < begin + lasts and world.engine._brake.pause is None:
                until = (begin + lasts) * SECOND
                world.apply(EvictionsPaused("by a test", until))
                assert world.engine.brake(world.now).paused
            elif world.engine._brake.pause is not None and world.second >= begin + lasts:
                world.apply(EvictionsResumed())
                paused = None
        for each in world.evictions[len(at_second) :]:
            assert each.claimant is not None
            at_second.append((world.second, each.claimant.uid))
    assert {f"owner/o{each}" for each in range(len(later))} <= world.started.keys()
    assert len(world.evictions) == total
    brakes = [each for each in (limit, max(total * share // 100, 1) if share else 0) if each]
    if brakes:
        assert fits(at_second, min(brakes)), at_second


@settings(max_examples=examples(100), deadline=None)
@given(claims=CLAIMS, limit=st.integers(1, 2))
def test_nothing_is_evicted_while_evictions_are_paused(
    claims: list[tuple[int, int, int]], limit: int
) -> None:
    total = sum(size for _, size, _ in claims)
    world = Clockwork("capacity", eviction=EvictionKnobs(max_per_minute=limit))
    world.node("n", ((GPU, total),))
    world.quota("owner", ((GPU, total),))
    world.quota("borrower")
    world.expect(arrival(0, "borrower", f"b{each}", ((GPU, 1),)) for each in range(total))
    while world.step(0):
        pass
    world.apply(EvictionsPaused("by a test"))
    world.expect(
        arrival(at + 1, "owner", f"o{each}", ((GPU, size),), priority=priority)
        for each, (at, size, priority) in enumerate(sorted(claims))
    )
    while world.step(10_000):
        pass
    assert world.evictions == []
    assert world.engine.next_deadline(at_rest=True) is None
    for each in range(len(claims)):
        refusal = world.engine.why(f"owner/o{each}")
        assert refusal is not None
        assert refusal.reason is Reason.EVICTIONS_PAUSED
    world.apply(EvictionsResumed())
    world.decide()
    when = [world.second] * len(world.evictions)
    while world.step(20_000):
        when += [world.second] * (len(world.evictions) - len(when))
    assert len(world.evictions) == total
    for _, together in groupby(when):
        assert len(list(together)) <= max(limit, max(size for _, size, _ in claims))
