"""Ratios as users read them."""

from fractions import Fraction

import pytest

from aliquot.engine.model.ratio import above, number, percent


@pytest.mark.parametrize(
    ("ratio", "digits", "shown"),
    [
        (Fraction(1, 3), 1, "33.3"),
        (Fraction(1, 3), 2, "33.33"),
        (Fraction(2, 3), 1, "66.7"),
        (0.125, 1, "12.5"),
        (0.333333, 1, "33.3"),
        (1, 1, "100.0"),
        (Fraction(5, 4), 2, "125.00"),
        (Fraction(0), 2, "0.00"),
        (Fraction(-5, 100), 2, "0.00"),
        (Fraction(1, 1000), 2, "0.10"),
        (Fraction(1105, 10000), 1, "11.0"),  # half to even, as is
        (0.1105, 1, "11.0"),  # the number that JSON shows of it
    ],
)
def test_percent(ratio: Fraction | float, digits: int, shown: str) -> None:
    assert percent(ratio, digits) == shown


def test_a_number_has_six_digits() -> None:
    assert number(Fraction(1, 3)) == 0.333333
    assert number(Fraction(2, 3)) == 0.666667
    assert number(Fraction(1, 10_000_000)) == 0


@pytest.mark.parametrize(
    ("used", "bound", "threshold", "is_above"),
    [
        (80, 100, 80, False),
        (81, 100, 80, True),
        (100, 100, 100, False),
        (101, 100, 100, True),
        (0, 0, 80, False),
        (1, 0, 80, True),
        (1, 3, 33, True),
    ],
)
def test_above(used: int, bound: int, threshold: int, is_above: bool) -> None:
    assert above(used, bound, threshold) == is_above


def test_a_table_and_json_show_one_share() -> None:
    shares = [Fraction(part, 97) for part in range(98)]
    assert [percent(number(each)) for each in shares] == [percent(each) for each in shares]
