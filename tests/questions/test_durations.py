"""How much longer pods run, drawn from how long others have run or run so far."""

from random import Random
from statistics import mean, stdev

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


def _means(pods: int) -> list[float]:
    """The mean of what each of 60 plays draws, where so many pods have ended."""
    known = [(10 * index, True) for index in range(1, pods + 1)]
    plays = [(Curve(known), Random(seed)) for seed in range(60)]
    return [mean(curve.draw(0, rng) for _ in range(300)) / (5 * pods) for curve, rng in plays]


def test_what_few_pods_show_differs_from_play_to_play() -> None:
    """By as much as the mean of so many pods is off: a fifth of it for ten, a fiftieth for 800."""
    assert 0.12 < stdev(_means(10)) < 0.25
    assert stdev(_means(800)) < 0.06
    assert 0.9 < mean(_means(10)) < 1.3
