"""The order of names: total, and the way people count."""

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.model.importance import natural

NAMES = st.lists(st.text("ab-01239", max_size=6), unique=True)


@given(NAMES)
def test_any_names_can_be_ordered_and_no_two_are_equal(names: list[str]) -> None:
    keys = [natural(name) for name in names]
    assert len(set(keys)) == len(names)
    assert all(one < other or other < one for one in keys for other in keys if one != other)


def test_numbers_count_as_numbers() -> None:
    names = ["p10", "p-10-11", "p2", "p-9", "p-10-2", "p", "p-10"]
    counted = ["p", "p-9", "p-10", "p-10-2", "p-10-11", "p2", "p10"]
    assert sorted(names, key=natural) == counted
