"""`level` against fractions: everybody is filled to one level, between a least and a most."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.sharing.waterfill import level
from tests.properties.level_rules import by_level

BIG = 2**62
AMOUNTS = st.one_of(st.integers(0, 12), st.integers(0, 2**40), st.integers(BIG - 3, BIG * 4))
WEIGHTS = st.one_of(st.integers(0, 4), st.integers(1, 2**31), st.just(BIG))


@dataclass(frozen=True)
class Siblings:
    total: int
    wants: list[int]
    sure: list[int]
    weights: list[int]

    @property
    def most(self) -> list[int]:
        """What each can get; who weighs nothing, no more than it is sure of."""
        pairs = zip(self.wants, self.sure, self.weights, strict=True)
        return [max(want, low) if weight else low for want, low, weight in pairs]

    def parts(self) -> list[int]:
        return level(self.total, self.wants, self.sure, self.weights)


@st.composite
def siblings(draw: st.DrawFn, fit: bool = False) -> Siblings:
    amounts = draw(st.sampled_from((st.integers(0, 12), AMOUNTS)))
    rows = draw(st.lists(st.tuples(amounts, amounts, WEIGHTS), max_size=7))
    wants, sure, weights = ([row[i] for row in rows] for i in range(3))
    high = sum(wants) + sum(sure) + 2
    total = draw(st.one_of(st.integers(sum(sure) if fit else 0, high), amounts))
    return Siblings(max(total, sum(sure)) if fit else total, wants, sure, weights)


@given(siblings())
def test_all_are_filled_to_one_level(case: Siblings) -> None:
    assert case.parts() == by_level(case.total, case.wants, case.sure, case.weights)


@given(siblings())
def test_parts_are_between_the_least_and_the_most(case: Siblings) -> None:
    for part, low, high in zip(case.parts(), case.sure, case.most, strict=True):
        assert low <= part <= high


@given(siblings(fit=True))
def test_parts_add_up_where_what_is_sure_fits(case: Siblings) -> None:
    assert sum(case.parts()) == min(case.total, sum(case.most))


@given(siblings())
def test_where_what_is_sure_does_not_fit_nobody_gets_more(case: Siblings) -> None:
    if sum(case.sure) >= case.total:
        assert case.parts() == case.sure


@given(siblings(), st.data())
def test_who_is_listed_first_matters_only_to_the_last_unit(
    case: Siblings, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(case.wants))))
    other = Siblings(
        case.total,
        [case.wants[i] for i in order],
        [case.sure[i] for i in order],
        [case.weights[i] for i in order],
    )
    parts, again = case.parts(), other.parts()
    assert sum(parts) == sum(again)
    for place, i in enumerate(order):
        assert abs(parts[i] - again[place]) <= 1
    rows = sorted(zip(case.wants, case.sure, case.weights, range(len(parts)), strict=True))
    for (*one, i), (*two, j) in pairwise(rows):
        assert one != two or parts[i] >= parts[j]
