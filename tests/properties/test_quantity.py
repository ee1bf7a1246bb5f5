"""Quantities: exact, canonical, and the same after every round trip."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.model import quantity
from aliquot.engine.model.quantity import Quantity, parse
from aliquot.errors import QuantityError

RESOURCES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "tensor-fusion.ai/tflops"])
FACTORS = {
    "": Fraction(1),
    **{s: Fraction(10) ** e for s, e in [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6)]},
    **{s: Fraction(10) ** e for s, e in [("G", 9), ("T", 12), ("P", 15), ("E", 18)]},
    **{s + "i": Fraction(1024) ** e for e, s in enumerate("KMGTPE", start=1)},
    **{f"e{e}": Fraction(10) ** e for e in (-3, 0, 3, 12)},
    **{f"E+{e}": Fraction(10) ** e for e in (1, 6)},
}


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A quantity as somebody may write it, and what it means."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    whole = draw(st.integers(0, 10**20))
    part = draw(st.sampled_from(["", ".", ".0", ".5", ".125", ".000000001"]))
    suffix = draw(st.sampled_from(sorted(FACTORS)))
    value = (whole + Fraction("0" + part if part not in ("", ".") else 0)) * FACTORS[suffix]
    return f"{sign}{whole}{part}{suffix}", -value if sign == "-" else value


@given(written())
def test_reads_exactly_what_is_written(pair: tuple[str, Fraction]) -> None:
    text, value = pair
    nanos = value * 10**9
    assert abs(parse(text).nanos) == -(-abs(nanos.numerator) // nanos.denominator)
    assert (parse(text).nanos < 0) == (value < 0)


@given(written())
def test_canonical_text_means_the_same_and_stays_as_it_is(pair: tuple[str, Fraction]) -> None:
    exact = parse(pair[0])
    again = parse(str(exact))
    assert again.nanos == exact.nanos
    assert str(again) == str(exact)


@given(RESOURCES, st.integers(0, 2**70))
def test_amounts_survive_a_round_trip(resource: str, amount: int) -> None:
    assert quantity.amount(resource, quantity.text(resource, amount)) == amount


@given(RESOURCES, written())
def test_amounts_round_up_by_less_than_one(resource: str, pair: tuple[str, Fraction]) -> None:
    text, _ = pair
    exact = Fraction(parse(text).nanos * quantity.per_one(resource), 10**9)
    assert 0 <= quantity.amount(resource, text) - exact < 1


@given(st.text(st.characters(exclude_characters="0123456789"), max_size=12))
def test_what_has_no_digit_is_refused_with_a_clear_error(text: str) -> None:
    with pytest.raises(QuantityError, match="not a quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("1.5", "1500m"),
        ("0.5Gi", "512Mi"),
        ("2e3", "2e3"),
        ("2000", "2k"),
        ("1024Mi", "1Gi"),
        ("12E", "12E"),
        ("100n", "100n"),
        ("-3", "-3"),
        (".5", "500m"),
    ],
)
def test_canonical_forms(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize("text", ["", ".", "+", "1e", "1ki", "1 Gi", "0x10", "1e1000", "٣", "1__0"])
def test_refusals(text: str) -> None:
    with pytest.raises(QuantityError):
        parse(text)


def test_bytes_are_written_in_the_shorter_form() -> None:
    assert quantity.text("memory", 2**31) == "2Gi"
    assert quantity.text("memory", 2 * 10**9) == "2G"
    assert str(Quantity(10**9)) == "1"
