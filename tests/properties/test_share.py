"""Water-filling: parts that add up, whoever is listed first."""

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.sharing.waterfill import Sharer, share, split

SHARERS = st.lists(
    st.builds(
        Sharer,
        name=st.text("abcdefgh", min_size=1, max_size=3),
        wants=st.integers(0, 2**40),
        floor=st.integers(0, 2**40),
        weight=st.integers(0, 2**62),
        lend=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda sharer: sharer.name,
)


@given(st.integers(0, 2**42), SHARERS)
def test_everybody_gets_the_floor_and_nobody_more_than_wanted(
    total: int, sharers: list[Sharer]
) -> None:
    parts = share(total, sharers)
    for each in sharers:
        assert parts[each.name] >= min(each.wants, each.floor)
        assert parts[each.name] <= max(each.wants, 0 if each.lend else each.floor)


@given(st.integers(0, 2**42), SHARERS)
def test_nothing_is_left_over_while_somebody_wants_more(total: int, sharers: list[Sharer]) -> None:
    parts = share(total, sharers)
    spent = sum(parts.values())
    sure = sum(min(s.wants, s.floor) if s.lend else s.floor for s in sharers)
    hungry = [s for s in sharers if s.wants > parts[s.name] and s.weight > 0]
    assert spent <= max(total, sure)
    assert not hungry or spent >= total


@given(st.integers(0, 2**42), SHARERS)
def test_the_order_does_not_matter(total: int, sharers: list[Sharer]) -> None:
    assert share(total, sharers) == share(total, sorted(sharers, key=lambda s: s.wants))
    assert share(total, sharers) == share(total, sharers[::-1])


@given(st.integers(0, 2**62), st.lists(st.integers(1, 2**62), min_size=1))
def test_a_division_adds_up_to_the_last_unit(pool: int, weights: list[int]) -> None:
    parts, whole = split(pool, weights), sum(weights)
    assert sum(parts) == pool
    assert all(abs(part * whole - pool * w) < whole for part, w in zip(parts, weights, strict=True))


def test_the_designs_worked_numbers() -> None:
    assert split(45, [60, 50, 80]) == [14, 12, 19]
    assert split(9, [50, 80]) == [3, 6]
