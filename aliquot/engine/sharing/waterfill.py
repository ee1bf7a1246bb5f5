"""Water-filling: how siblings share a total, exactly.

Everybody gets what they want up to their floor; the rest is shared by weight among those who want
more, by largest remainder, so that the parts add up to the whole to the last unit; whoever is
satisfied drops out and the others share what is left over. Ties go by name, never by order.

The rules are here once, in plain ints of any size: `floors` and `fill` work on lists whose order is
that of the names. `pools` does the same for very many totals at once, and comes back here for
numbers that do not fit its arrays.

`level` is the other way to read a floor: not something that comes before the shares, but the least
that a share may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sharer:
    """One of the siblings: what it wants, what it is sure of, and its say in the rest."""

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
    """The part of each, in order of name: what it is sure of, and its shares of the rest.

    Each round leaves at most half of the pool, or at most half of the weight, for the next one: so
    there are few, however many share.
    """
    parts = sure.copy()
    pool = total - sum(sure)
    if pool <= 0:
        return parts
    hungry = [i for i, want in enumerate(wants) if want > sure[i] and weights[i] > 0]
    while pool > 0 and hungry:
        shares = split(pool, [weights[i] for i in hungry])
        still, pool = [], 0
        for i, more in zip(hungry, shares, strict=True):
            part = parts[i] + more
            if part >= wants[i]:
                pool += part - wants[i]
                part = wants[i]
            else:
                still.append(i)
            parts[i] = part
        hungry = still
    return parts


def level(total: int, wants: list[int], sure: list[int], weights: list[int]) -> list[int]:
    """The part of each, in order of name: its share by weight, but no less than it is sure of.

    Nor more than it wants, unless it is sure of that. In each round, those are settled who would
    get too little, or those who would get too much, whichever is more in all: the others can then
    only get less, or more, which settles nobody wrongly. The rest is shared as it falls.
    """
    most = [max(pair) for pair in zip(wants, sure, strict=True)]
    parts = sure.copy()
    open_to = [i for i, weight in enumerate(weights) if weight > 0 and most[i] > sure[i]]
    pool = total - sum(sure[i] for i in range(len(sure)) if i not in set(open_to))
    while open_to:
        whole = sum(weights[i] for i in open_to)
        lifts = {i: max(sure[i] * whole - pool * weights[i], 0) for i in open_to}
        cuts = {i: max(pool * weights[i] - most[i] * whole, 0) for i in open_to}
        up, down = sum(lifts.values()), sum(cuts.values())
        if not up and not down:
            for i, part in zip(open_to, split(pool, [weights[i] for i in open_to]), strict=True):
                parts[i] = part
            break
        settled = {i: sure[i] for i in open_to if lifts[i] and up >= down}
        settled |= {i: most[i] for i in open_to if cuts[i] and down >= up}
        for i, part in settled.items():
            parts[i] = part
            pool -= part
        open_to = [i for i in open_to if i not in settled]
    return parts


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
    """What each may be sure of: its min, scaled down in proportion where they exceed the total.

    Mins that do not scale are kept, and served first. What rounding down leaves over is shared.
    """
    if sum(mins) <= total:
        return mins
    scalable = sum(low for low, scale in zip(mins, scales, strict=True) if scale)
    left = max(total - (sum(mins) - scalable), 0)
    return [
        left * low // scalable if scale and low else low
        for low, scale in zip(mins, scales, strict=True)
    ]
