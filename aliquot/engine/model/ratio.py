"""Ratios of what is used to a bound, as users read them: exact, and rounded in one place only.

Rounding is half to even. No decision is taken by a rounded ratio: see `above`.
"""

from fractions import Fraction

_PERCENT = 100
_DIGITS = 6
"""Digits of a ratio in JSON: ratios are exact in the engine, a millionth is enough for users."""


def number(ratio: Fraction) -> float:
    """A ratio as a number for programs, to a millionth."""
    return float(round(ratio, _DIGITS))


def percent(ratio: Fraction | float, digits: int = 1) -> str:
    """A ratio in percent, such as `12.5`, to so many digits after the point; below 0 it is 0."""
    exact = ratio if isinstance(ratio, Fraction) else Fraction(str(ratio))
    scale = int(10**digits)
    whole, part = divmod(round(max(exact, Fraction(0)) * _PERCENT * scale), scale)
    return f"{whole}.{part:0{digits}}"


def above(used: int, bound: int, threshold: int = _PERCENT) -> bool:
    """Is more used than the threshold, in percent, of a bound? Of a bound of 0, anything is."""
    return used * _PERCENT > bound * threshold
