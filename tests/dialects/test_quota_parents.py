"""The parents of quotas: circles are cut, trees have a limited depth, and both are findings."""

from hypothesis import given
from hypothesis import strategies as st

from aliquot.dialects import quota_parents
from aliquot.engine import MOST_LEVELS

_NAMES = st.sampled_from("abcdefgh")


def chain(length: int) -> dict[str, str]:
    return {f"q{i}": f"q{i - 1}" for i in range(1, length)}


def test_a_chain_as_deep_as_allowed_stays_as_it_is() -> None:
    parents = chain(MOST_LEVELS)
    assert quota_parents.placed(parents) == parents
    assert quota_parents.problems({**parents}) == {}


def test_a_quota_that_is_too_deep_is_named_with_the_limit() -> None:
    found = quota_parents.problems({**chain(5_000)})
    assert len(found) == 5_000 - MOST_LEVELS
    assert found["q64"] == "is level 65 of its tree; at most 64 levels are supported"
    assert found["q4999"] == "is level 5000 of its tree; at most 64 levels are supported"


def test_a_quota_that_is_too_deep_stays_below_the_ancestors_of_the_other_levels() -> None:
    placed = quota_parents.placed(chain(5_000))
    assert placed["q63"] == placed["q64"] == placed["q4999"] == "q62"
    assert max(quota_parents.quota_levels(placed).values()) == MOST_LEVELS


def test_a_long_circle_is_described_shortly() -> None:
    circle = {**chain(5_000), "q0": "q4999"}
    assert quota_parents.placed(circle) == {}
    found = quota_parents.problems({**circle})
    assert len(found) == len(circle)
    assert found["q9"].startswith("a circle: q9 is below q8 is below q7")
    assert found["q9"].endswith(" is below q2 is below 4992 more is below q9")


@given(st.dictionaries(_NAMES, _NAMES))
def test_what_is_left_is_a_forest_and_nothing_but_circles_is_cut(parents: dict[str, str]) -> None:
    placed = quota_parents.placed(parents)
    for name, parent in parents.items():
        above, at = set[str](), parents.get(name)
        while at is not None and at not in above:
            above.add(at)
            at = parents.get(at)
        assert placed.get(name) == (None if name in above else parent)
    assert set(quota_parents.problems({**parents})) == parents.keys() - placed.keys()
