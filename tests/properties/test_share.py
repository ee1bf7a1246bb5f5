"""Water-filling: parts that add up, whoever is listed first."""

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.share import Sharer, divide, share

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


@given(st.integers(0, 2**62), st.dictionaries(st.text("ab"), st.integers(1, 2**62), min_size=1))
def test_a_division_adds_up_to_the_last_unit(pool: int, weights: dict[str, int]) -> None:
    parts = divide(pool, list(weights.items()))
    whole = sum(weights.values())
    assert sum(parts.values()) == pool
    assert all(abs(parts[n] * whole - pool * w) < whole for n, w in weights.items())


def test_the_designs_worked_numbers() -> None:
    assert divide(45, [("a", 60), ("b", 50), ("c", 80)]) == {"a": 14, "b": 12, "c": 19}
    assert divide(9, [("b", 50), ("c", 80)]) == {"b": 3, "c": 6}
