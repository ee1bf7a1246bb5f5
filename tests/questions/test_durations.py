"""How much longer pods run, drawn from how long others have run or run so far."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from aliquot.questions.durations import Curve

known = st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=30)


@given(known, st.integers(0, 60), st.integers(0, 2**32))
def test_what_is_left_is_some_time_and_what_is_drawn_has_been_seen(
    lengths: list[tuple[int, bool]], so_far: int, seed: int
) -> None:
    curve, rng = Curve(lengths), Random(seed)
    drawn = curve.draw(so_far, rng)
    assert drawn >= 1
    ends = {length for length, ended in lengths if ended}
    if ends and max(lengths) == (max(ends), True) and so_far < max(ends):
        assert so_far + drawn in ends
