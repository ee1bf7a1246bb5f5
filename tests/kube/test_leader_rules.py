"""Never two holders, whatever is late or lost; and soon one, when nothing is."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.errors import InputError
from aliquot.kube.leader.leader_rules import Candidate, Read, Term, Timing, Wait, Write
from tests.campaign import examples
from tests.kube.candidates import TIMING, Clock, Fate, World

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DELAYS = st.none() | st.floats(0, 30)
FATES = st.lists(st.builds(Fate, DELAYS, DELAYS) | st.just(Fate()), max_size=20)
OUTAGES = st.lists(st.tuples(st.floats(0, 100), st.floats(1, 60)), max_size=2)
"""When the network is cut off, and for how long."""
CLOCKS = st.builds(
    Clock,
    offset=st.floats(-1e6, 1e6),
    rate=st.floats(0.85, 1.15),
    wrong=st.floats(-1e5, 1e5),
)
MEMBERS = st.lists(st.tuples(CLOCKS, FATES, OUTAGES), min_size=2, max_size=4)
MOMENTS = st.floats(0, 120)

Drawn = list[tuple[Clock, list[Fate], list[tuple[float, float]]]]


def fates(world: World, drawn: list[Fate], outages: list[tuple[float, float]]) -> Iterator[Fate]:
    """What was drawn, and then a network without faults, except while it is cut off."""
    for fate in chain(drawn, repeat(Fate())):
        cut_off = any(start <= world.at < start + length for start, length in outages)
        yield Fate(None, None) if cut_off else fate


def at_most_one(world: World) -> None:
    assert len(world.holders()) < 2, f"at {world.at}: {world.holders()}"


def settle(world: World) -> None:
    """Long after the last fault, one holds, and goes on holding."""
    world.run(400)
    (holder,) = world.holders()
    world.run(440)
    assert world.holders() == [holder]


@settings(max_examples=examples(150), deadline=None)
@given(
    MEMBERS,
    st.lists(MOMENTS, min_size=4, max_size=4),
    st.lists(st.tuples(MOMENTS, st.integers(0, 3), st.booleans()), max_size=2),
)
def test_never_two_holders(
    drawn: Drawn, starts: list[float], ends: list[tuple[float, int, bool]]
) -> None:
    """Candidates come at any time, and go: suddenly, or by giving the Lease back."""
    world = World(check=at_most_one)
    for (clock, some, outages), start in zip(drawn, starts, strict=False):
        world.join(clock, fates(world, some, outages), start)
    for moment, index, clean in ends:
        member = world.members[index % len(drawn)]
        world.later(moment, member.candidate.leave if clean else member.die)
    world.join(Clock(), repeat(Fate()), 200)
    settle(world)


EDITS = st.sampled_from(["delete", "erase", "candidate-0", "candidate-1", "somebody", "shorten"])


@settings(max_examples=examples(150), deadline=None)
@given(MEMBERS, st.lists(st.tuples(MOMENTS, EDITS), min_size=1, max_size=4))
def test_never_two_holders_when_people_edit_the_lease(
    drawn: Drawn, edits: list[tuple[float, str]]
) -> None:
    """As long as every candidate has seen the Lease once; nobody can know what it never saw."""
    world = World(check=at_most_one)
    for clock, some, outages in drawn:
        later = [(start + 5, length) for start, length in outages]
        world.join(clock, fates(world, [*repeat(Fate(), 4), *some], later))
    world.run(5)
    for moment, edit in edits:
        world.later(moment, partial(by_hand, world, edit))
    settle(world)


@pytest.mark.parametrize("edit", ["delete", "erase", "candidate-1", "somebody"])
def test_who_was_cut_off_for_long_knows_that_it_may_have_missed_something(edit: str) -> None:
    """The Lease is changed by hand when one comes back, and its holder cannot hear of it."""
    world = World(check=at_most_one)
    world.join(Clock(), fates(world, [], [(39.5, 30)]))
    world.join(Clock(), fates(world, [], [(5, 34)]), 1)
    world.run(39.6)
    assert world.holders() == ["candidate-0"]
    by_hand(world, edit)
    world.run(65)
    assert world.holders() == ["candidate-1"]


def by_hand(world: World, edit: str) -> None:
    term = world.server.term
    if term is None or edit == "delete":
        world.server.edit(None)
    elif edit == "shorten":
        world.server.edit(replace(term, seconds=1))
    else:
        world.server.edit(replace(term, holder="" if edit == "erase" else edit))


def candidate() -> Candidate:
    return Candidate("me", TIMING)


def written(step: object) -> Term:
    assert isinstance(step, Write), step
    return step.term


def holding(at: float = 0.0) -> Candidate:
    """One that has won at this time, at version 1."""
    mine = candidate()
    mine.saw(None, None, at)
    mine.wrote(written(mine.step(at, NOON)), "1", at)
    return mine


def test_looks_before_it_writes() -> None:
    assert candidate().step(0, NOON) == Read()


def test_makes_the_lease_if_there_is_none() -> None:
    mine = candidate()
    mine.saw(None, None, 0)
    stamp = "2026-01-01T12:00:00.000000Z"
    assert mine.step(0, NOON) == Write(Term("me", 15, stamp, stamp, 0), None)


def test_holds_from_before_the_renewal_was_sent_to_the_deadline() -> None:
    mine = holding(at=100)
    assert mine.holds(109.9)
    assert mine.left(104) == 6
    assert not mine.holds(110)
    assert mine.left(111) == 0


def test_renews_without_looking_and_keeps_when_it_was_acquired() -> None:
    mine = holding()
    again = mine.step(2, NOON.replace(second=2))
    stamps = "2026-01-01T12:00:00.000000Z", "2026-01-01T12:00:02.000000Z"
    assert again == Write(Term("me", 15, *stamps, 0), "1")


def test_renewals_differ_even_if_the_clock_is_set_back() -> None:
    mine = holding()
    stamps = {written(mine.step(2, NOON.replace(hour=3))).renewed for _ in range(3)}
    assert len(stamps) == 3
    assert min(str(each) for each in stamps) > "2026-01-01T12:00:00.000000Z"


def test_waits_for_the_term_of_another_to_run_out_since_it_was_first_seen() -> None:
    mine, theirs = candidate(), Term("you", 15, "long ago", "long ago", 3)
    mine.saw(theirs, "7", 100)
    assert mine.step(100, NOON) == Wait(15)
    assert mine.step(113, NOON) == Read()
    mine.saw(theirs, "8", 113)  # somebody has changed a label: no renewal
    assert mine.step(113, NOON) == Wait(2)
    mine.saw(theirs, "8", 115)
    taken = written(mine.step(115, NOON))
    assert (taken.holder, taken.transitions) == ("me", 4)
    assert taken.acquired == taken.renewed


def test_a_renewal_starts_the_wait_again() -> None:
    mine = candidate()
    mine.saw(Term("you", 15, "a", "b"), "7", 100)
    mine.saw(Term("you", 15, "a", "c"), "8", 114)
    assert mine.step(114, NOON) == Wait(15)


def test_a_longer_term_than_ones_own_is_respected() -> None:
    mine = candidate()
    mine.saw(Term("you", 60, "a", "b"), "7", 0)
    assert mine.step(0, NOON) == Wait(60)


def test_one_that_was_given_back_is_taken_at_once() -> None:
    mine = candidate()
    mine.saw(Term("you", 15, "a", "b", 3), "7", 100)
    mine.saw(Term(transitions=3), "8", 101)
    assert isinstance(step := mine.step(101, NOON), Write)
    assert (step.term.transitions, step.version) == (4, "8")


@pytest.mark.parametrize("holder", ["", "you", "me"])
def test_who_holds_steps_back_at_once_when_another_wrote(holder: str) -> None:
    mine = holding()
    mine.unsure()
    mine.saw(Term(holder, 15, "a", "not mine"), "2", 1)
    assert not mine.holds(1)
    assert mine.step(1, NOON) == Wait(15)


def test_who_holds_makes_a_deleted_lease_anew() -> None:
    mine = holding()
    mine.unsure()
    mine.saw(None, None, 1)
    assert mine.holds(1)
    assert isinstance(step := mine.step(1, NOON), Write)
    assert step.version is None


def test_who_does_not_hold_waits_when_the_lease_is_deleted() -> None:
    mine = candidate()
    mine.saw(Term("you", 15, "a", "b"), "7", 100)
    mine.saw(None, None, 114)
    assert mine.step(114, NOON) == Wait(15)


def test_a_renewal_that_got_no_answer_is_recognised() -> None:
    mine = holding()
    first, second = written(mine.step(2, NOON)), written(mine.step(4, NOON))
    mine.unsure()
    mine.saw(first, "2", 5)
    assert mine.holds(5)
    assert second != first
    assert isinstance(mine.step(5, NOON), Write)


def test_who_leaves_holds_no_longer_and_gives_it_back_in_full() -> None:
    mine = holding()
    mine.leave()
    assert not mine.holds(0)
    step = mine.step(1, NOON)
    assert step == Write(Term(transitions=0), "1")
    mine.wrote(written(step), "2", 1)
    assert not mine.holds(1)
    assert isinstance(mine.step(1, NOON), Wait)


def test_who_leaves_does_not_give_back_what_is_not_its_own() -> None:
    mine = candidate()
    mine.saw(Term("you", 15, "a", "b"), "7", 0)
    mine.leave()
    assert isinstance(mine.step(100, NOON), Wait)


@pytest.mark.parametrize("timing", [(15, 15, 2), (15, 10, 10), (15, 10, 0), (5, 10, 2)])
def test_timings_that_promise_nothing_are_refused(timing: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="retry < deadline < duration"):
        Timing(*timing)
