"""Water-filling: how siblings share a total, exactly.

Each sibling gets what it wants up to its floor; the rest is shared by weight among those that want
more, by largest remainder, so that the parts add up to the total to the last unit; a sibling that
has what it wants drops out, and the others share what is left. Ties are broken by name, never by
order of arrival.

The rules are here once, in plain ints of any size: `floors` and `fill` work on lists in order of
name. `waterfill_arrays` does the same for very many totals at once, and calls this module for
numbers that do not fit its arrays.

In `level` a floor is not added before the shares, but is the least that a share may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sharer:
    """One of the siblings: what it wants, its floor, and its weight in sharing the rest."""

    name: str
    wants: int
    floor: int
    weight: int
    lend: bool = True


def share(total: int, sharers: Sequence[Sharer]) -> dict[str, int]:
    """The part of each. Floors are kept even where they add up to more than the total."""
    ordered = sorted(sharers, key=lambda each: each.name)
    parts = fill(
        total,
        [each.wants for each in ordered],
        [min(each.wants, each.floor) if each.lend else each.floor for each in ordered],
        [each.weight for each in ordered],
    )
    return {each.name: part for each, part in zip(ordered, parts, strict=True)}


def fill(total: int, wants: list[int], sure: list[int], weights: list[int]) -> list[int]:
    """The part of each, in order of name: what it is sure of, and its share of the rest.

    Each round leaves at most half of the pool, or at most half of the weight, for the next one: so
    rounds are few, however many siblings there are.
    """
    parts = sure.copy()
    pool = total - sum(sure)
    if pool <= 0:
        return parts
    unmet = [i for i, want in enumerate(wants) if want > sure[i] and weights[i] > 0]
    while pool > 0 and unmet:
        shares = split(pool, [weights[i] for i in unmet])
        still, pool = [], 0
        for i, more in zip(unmet, shares, strict=True):
            part = parts[i] + more
            if part >= wants[i]:
                pool += part - wants[i]
                part = wants[i]
            else:
                still.append(i)
            parts[i] = part
        unmet = still
    return parts


def level(total: int, wants: list[int], sure: list[int], weights: list[int]) -> list[int]:
    """The part of each, in order of name: its share by weight, but no less than it is sure of.

    Nor is it more than it wants, unless it is sure of more. Rounds settle the siblings whose share
    by weight is outside these bounds; the rest is shared by weight.
    """
    most = [max(pair) for pair in zip(wants, sure, strict=True)]
    parts = sure.copy()
    unsettled = [i for i, weight in enumerate(weights) if weight > 0 and most[i] > sure[i]]
    pool = total - sum(sure) + sum(sure[i] for i in unsettled)
    while settled := _settle(pool, unsettled, sure, most, weights):
        for i, part in settled.items():
            parts[i] = part
            pool -= part
        unsettled = [i for i in unsettled if i not in settled]
    if unsettled:
        shares = split(pool, [weights[i] for i in unsettled])
        for i, part in zip(unsettled, shares, strict=True):
            parts[i] = part
    return parts


def _settle(
    pool: int, unsettled: list[int], sure: list[int], most: list[int], weights: list[int]
) -> dict[int, int]:
    """The parts that a round of `level` settles; none if all shares by weight are within bounds.

    They are either those of the siblings whose share by weight is below their floor, or of those
    whose share is above what they want, whichever differ by more in all: the shares of the others
    then only shrink, or only grow, so that none is settled wrongly.
    """
    whole = sum(weights[i] for i in unsettled)
    raises = {i: max(sure[i] * whole - pool * weights[i], 0) for i in unsettled}
    cuts = {i: max(pool * weights[i] - most[i] * whole, 0) for i in unsettled}
    up, down = sum(raises.values()), sum(cuts.values())
    settled = {i: sure[i] for i in unsettled if raises[i] and up >= down}
    return settled | {i: most[i] for i in unsettled if cuts[i] and down >= up}


def split(pool: int, weights: list[int]) -> list[int]:
    """Split a pool by weight, in order of name; one unit each for the largest remainders."""
    whole = sum(weights)
    parts = [pool * weight // whole for weight in weights]
    left = pool - sum(parts)
    if left:
        remainders = [
            part * whole - pool * weight for part, weight in zip(parts, weights, strict=True)
        ]
        for i in sorted(range(len(parts)), key=remainders.__getitem__)[:left]:
            parts[i] += 1
    return parts


def floors(total: int, mins: list[int], scales: list[int]) -> list[int]:
    """The floor of each: its min, scaled down in proportion where the mins exceed the total.

    Mins that do not scale are kept in full, and come first. What rounding leaves over is shared.
    """
    if sum(mins) <= total:
        return mins
    scalable = sum(low for low, scale in zip(mins, scales, strict=True) if scale)
    left = max(total - (sum(mins) - scalable), 0)
    return [
        left * low // scalable if scale and low else low
        for low, scale in zip(mins, scales, strict=True)
    ]
