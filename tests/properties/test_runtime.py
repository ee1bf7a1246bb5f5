"""Runtime in a tree of quotas: the rules, and the same figures however they came about."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aliquot.engine.columns import Resources, Slots, Vector
from aliquot.engine.sharing import runtime, waterfill_arrays
from aliquot.engine.sharing.runtime import RuntimeTree
from tests.campaign import examples
from tests.properties.runtime_rules import LIMIT, TOP, Amounts, Result, Team, by_the_rules

RESOURCES = ("cpu", "memory", "gpu")
NAMES = ("a", "b", "c", "d", "e", "f", "g")

SMALL = st.integers(0, 12)
HUGE = st.integers(0, LIMIT) | st.sampled_from(
    [LIMIT, LIMIT - 1, 2**55, 2**56, 2**56 - 1, 3 * 2**60]
)
AMOUNTS = SMALL | st.integers(0, 2**21) | st.integers(0, 2**44) | HUGE
ALL_WAYS = pytest.mark.parametrize("few", [0, 3, 10**9], ids=["levels", "mixed", "cells"])


class Quotas:
    """A RuntimeTree with names for slots, and the teams that were put into it."""

    def __init__(self, rows: int = 1) -> None:
        self.resources, self.slots = Resources(), Slots()
        for name in RESOURCES[:rows]:
            self.resources.row(name)
        self.tree = RuntimeTree(self.resources, self.slots, self.slots.take(TOP))
        self.teams: dict[str, Team] = {}
        self.totals: Amounts = {}

    def put(self, team: Team) -> None:
        slot, parent = self.slots.take(team.name), self.slots[team.parent]
        low, high, weight = vector(team.low), vector(team.high), vector(team.weight)
        self.tree.set(slot, parent, team.name, low, high, weight, team.lend, team.scale)
        self.teams[team.name] = team
        for row in range(len(self.resources)):
            self.tree.ask(slot, row, team.own.get(row, 0))

    def total(self, row: int, amount: int) -> None:
        self.tree.total(row, amount)
        self.totals[row] = amount

    def drop(self, name: str) -> None:
        self.tree.remove(self.slots[name])
        self.slots.drop(name)
        del self.teams[name]

    def figures(self, row: int) -> dict[str, Result]:
        tree = self.tree
        columns = (tree.request, tree.limited, tree.scaled_min, tree.runtime)
        return {
            name: Result(*(column.get(row, self.slots[name]) for column in columns))
            for name in self.teams
        }

    def expected(self, row: int) -> dict[str, Result]:
        one = 1000 if RESOURCES[row] == "cpu" else 1
        return by_the_rules(self.teams.values(), row, self.totals.get(row, 0), one)


def vector(amounts: Amounts) -> Vector:
    return tuple(sorted(amounts.items()))


@contextmanager
def computed(few: int) -> Iterator[None]:
    """Cell by cell or level by level, whatever the size; and up to how many in plain ints."""
    before = runtime._FEW, waterfill_arrays._FEW_MEMBERS
    runtime._FEW = waterfill_arrays._FEW_MEMBERS = few
    try:
        yield
    finally:
        runtime._FEW, waterfill_arrays._FEW_MEMBERS = before


def quotas(teams: list[Team], total: int, few: int = 0) -> Quotas:
    made = Quotas()
    for team in teams:
        made.put(team)
    made.total(0, total)
    with computed(few):
        made.tree.refresh()
    return made


def forests(amounts: st.SearchStrategy[int] = AMOUNTS) -> st.SearchStrategy[list[Team]]:
    """Teams in one resource, parents before children, whose names are in no order."""
    maybe = st.none() | amounts
    places = st.integers(0, len(NAMES))
    flags = st.tuples(st.booleans(), st.integers(0, 3))
    seat = st.tuples(places, maybe, maybe, maybe, amounts, flags)
    return st.builds(_forest, st.permutations(NAMES), st.lists(seat, min_size=1, max_size=7))


def _forest(names: list[str], seats: list[tuple[Any, ...]]) -> list[Team]:
    return [
        Team(
            name=names[number],
            parent=(TOP, *names[:number])[place % (number + 1)],
            low=_named(low),
            high=_named(high),
            weight=_named(weight),
            lend=lend,
            scale=scale > 0,
            own={0: own},
        )
        for number, (place, low, high, weight, own, (lend, scale)) in enumerate(seats)
    ]


def _named(amount: int | None) -> Amounts:
    return {} if amount is None else {0: amount, 1: 1}


@ALL_WAYS
@settings(max_examples=examples(150))
@given(teams=forests(), total=AMOUNTS)
def test_figures_are_those_of_the_rules(few: int, teams: list[Team], total: int) -> None:
    made = quotas(teams, total, few)
    assert made.figures(0) == made.expected(0)


@ALL_WAYS
@settings(max_examples=examples(150))
@given(teams=forests(SMALL), total=st.integers(0, 40))
def test_small_figures_are_those_of_the_rules(few: int, teams: list[Team], total: int) -> None:
    made = quotas(teams, total, few)
    assert made.figures(0) == made.expected(0)


@pytest.mark.parametrize("weights", [AMOUNTS, st.integers(2**49, 5 * 2**47)], ids=["any", "long"])
@settings(max_examples=12)
@given(data=st.data(), total=AMOUNTS)
def test_a_large_family_follows_the_rules_too(
    weights: st.SearchStrategy[int], data: st.DataObject, total: int
) -> None:
    seats = data.draw(st.lists(st.tuples(SMALL, weights, AMOUNTS), min_size=70, max_size=90))
    teams = [
        Team(f"{number * 7919 % 1000:03}", low={0: low}, weight={0: weight}, own={0: own})
        for number, (low, weight, own) in enumerate(seats)
    ]
    made = quotas(teams, total, few=64)
    assert made.figures(0) == made.expected(0)


@settings(max_examples=examples(100))
@given(teams=forests(), total=AMOUNTS)
def test_siblings_get_all_there_is_and_no_more(teams: list[Team], total: int) -> None:
    made = quotas(teams, total)
    found = made.figures(0)
    for parent in (TOP, *found):
        has = total if parent == TOP else found[parent].runtime
        family = [team for team in teams if team.parent == parent]
        spent = sum(found[team.name].runtime for team in family)
        promised = sum(found[team.name].scaled_min for team in family)
        assert spent <= max(has, promised)
        assert promised <= has or not all(team.scale for team in family)
        wanting = [t for t in family if found[t.name].runtime < found[t.name].limited]
        assert spent >= has or all(_no_say(team) for team in wanting)


def _no_say(team: Team) -> bool:
    return any(team.weight.values()) and team.weight.get(0) == 0


@settings(max_examples=examples(100))
@given(teams=forests(), total=AMOUNTS)
def test_nobody_gets_less_than_a_promise_or_more_than_a_wish(teams: list[Team], total: int) -> None:
    for name, figures in quotas(teams, total).figures(0).items():
        team = next(team for team in teams if team.name == name)
        assert figures.runtime >= min(figures.limited, figures.scaled_min)
        assert figures.runtime <= max(figures.limited, 0 if team.lend else figures.scaled_min)


@settings(max_examples=examples(100))
@given(teams=forests(), total=AMOUNTS, data=st.data())
def test_the_order_of_arrival_leaves_no_trace(
    teams: list[Team], total: int, data: st.DataObject
) -> None:
    late = Quotas()
    late.total(0, total)
    waiting = data.draw(st.permutations(teams))
    while waiting:
        ready = [t for t in waiting if t.parent == TOP or t.parent in late.teams]
        late.put(ready[0])
        waiting.remove(ready[0])
        late.tree.refresh()
    assert late.figures(0) == quotas(teams, total).figures(0)


@settings(max_examples=examples(100))
@given(
    weights=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    total=st.integers(0, 200),
    more=st.integers(1, 50),
)
def test_a_greater_weight_never_gets_less(weights: list[int], total: int, more: int) -> None:
    """Among those who always want more; whom the others' wishes bound, see docs/decisions.md."""
    teams = [Team(f"t{i}", weight={0: w}, own={0: 10**6}) for i, w in enumerate(weights)]
    before = quotas(teams, total).figures(0)["t0"].runtime
    teams[0] = replace(teams[0], weight={0: weights[0] + more})
    assert quotas(teams, total).figures(0)["t0"].runtime >= before


class Edits(RuleBasedStateMachine):
    """Any sequence of edits leads to the figures of a tree that was built in one go."""

    def __init__(self) -> None:
        super().__init__()
        self.quotas = Quotas(rows=2)
        self.before: dict[tuple[int, str], int] = {}

    @initialize(teams=forests(SMALL), total=st.integers(0, 40))
    def begin(self, teams: list[Team], total: int) -> None:
        for team in teams:
            self.quotas.put(team)
        self.quotas.total(0, total)
        self.refresh(0)

    @rule(data=st.data(), name=st.sampled_from(NAMES), lend=st.booleans())
    def put(self, data: st.DataObject, name: str, lend: bool) -> None:
        rows = st.integers(0, len(self.quotas.resources) - 1)
        bounds = st.dictionaries(rows, SMALL | SMALL | HUGE)
        known = self.quotas.teams.get(name)
        team = Team(
            name=name,
            parent=data.draw(st.sampled_from([TOP, *self._not_below(name)])),
            low=data.draw(bounds),
            high=data.draw(bounds),
            weight=data.draw(bounds),
            lend=lend,
            own=known.own if known else {},
        )
        self.quotas.put(team)

    @precondition(lambda self: self.quotas.teams)
    @rule(data=st.data(), amount=SMALL | SMALL | HUGE)
    def ask(self, data: st.DataObject, amount: int) -> None:
        team = self.quotas.teams[data.draw(st.sampled_from(sorted(self.quotas.teams)))]
        row = data.draw(st.integers(0, len(self.quotas.resources) - 1))
        self.quotas.put(replace(team, own={**team.own, row: amount}))

    @precondition(lambda self: self.quotas.teams)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        team = self.quotas.teams[data.draw(st.sampled_from(sorted(self.quotas.teams)))]
        parent = data.draw(st.sampled_from([TOP, *self._not_below(team.name)]))
        self.quotas.put(replace(team, parent=parent))

    @precondition(lambda self: self.quotas.teams)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        parents = {team.parent for team in self.quotas.teams.values()}
        childless = sorted(self.quotas.teams.keys() - parents)
        self.quotas.drop(data.draw(st.sampled_from(childless)))

    @rule(row=st.integers(0, 1), amount=st.integers(0, 60) | HUGE)
    def total(self, row: int, amount: int) -> None:
        self.quotas.total(row, amount)

    @rule()
    def meet_a_resource(self) -> None:
        self.quotas.resources.row(RESOURCES[2])

    @rule(few=st.sampled_from([0, 2, 10**9]))
    def refresh(self, few: int) -> None:
        with computed(few):
            changed = self.quotas.tree.refresh()
        now = self._runtimes()
        differ = {name for row, name in now if now[row, name] != self.before.get((row, name), 0)}
        assert changed == sorted(self.quotas.slots[name] for name in differ)
        for row in range(len(self.quotas.resources)):
            assert self.quotas.figures(row) == self.quotas.expected(row)
        assert not self.quotas.tree.refresh()

    @invariant()
    def remember(self) -> None:
        self.before = self._runtimes()

    def _runtimes(self) -> dict[tuple[int, str], int]:
        return {
            (row, name): figures.runtime
            for row in range(len(self.quotas.resources))
            for name, figures in self.quotas.figures(row).items()
        }

    def _not_below(self, name: str) -> list[str]:
        teams, found = self.quotas.teams, []
        for other in sorted(teams):
            ancestor = other
            while ancestor not in (TOP, name):
                ancestor = teams[ancestor].parent
            if ancestor == TOP:
                found.append(other)
        return found


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=examples(150), stateful_step_count=20)
