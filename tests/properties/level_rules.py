"""Shares between a least and a most, once more in fractions: the level to which all are filled.

Everybody gets the weight times one level, the same for all, but no less than the least and no more
than the most. What everybody gets in all grows with the level, along straight lines between the
points where somebody is raised from the least or stopped at the most: so the level is found by
halving among these points. Whole units by largest remainder, ties to whoever is listed first.
"""

from fractions import Fraction


def by_level(total: int, wants: list[int], sure: list[int], weights: list[int]) -> list[int]:
    """The part of each, in whole units."""
    most = [max(w, s) if weight else s for w, s, weight in zip(wants, sure, weights, strict=True)]
    exact = clamped(level_of(total, sure, most, weights), sure, most, weights)
    parts = [int(each) for each in exact]
    left = max(min(total, sum(most)), sum(sure)) - sum(parts)
    order = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[:left]:
        parts[i] += 1
    return parts


def clamped(
    level: Fraction, sure: list[int], most: list[int], weights: list[int]
) -> list[Fraction]:
    """What everybody gets at a level."""
    return [
        min(max(level * weight, Fraction(low)), Fraction(high))
        for low, high, weight in zip(sure, most, weights, strict=True)
    ]


def level_of(total: int, sure: list[int], most: list[int], weights: list[int]) -> Fraction:
    """The level at which they get the total in all; the lowest or the highest that matters."""
    bounds = zip(sure, most, weights, strict=True)
    points = {Fraction(each, weight) for *both, weight in bounds if weight for each in both}
    steps = sorted(points | {Fraction(0)})

    def filled(level: Fraction) -> Fraction:
        return sum(clamped(level, sure, most, weights), Fraction(0))

    if filled(steps[0]) >= total:
        return steps[0]
    if filled(steps[-1]) <= total:
        return steps[-1]
    low, high = 0, len(steps) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if filled(steps[middle]) <= total else (low, middle)
    lower, upper = filled(steps[low]), filled(steps[high])
    part = (total - lower) / (upper - lower)
    return steps[low] + part * (steps[high] - steps[low])
