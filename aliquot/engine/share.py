"""Water-filling: how siblings share a total, exactly.

Everybody gets what they want up to their floor; the rest is shared by weight among those who want
more, by largest remainder, so that the parts add up to the whole to the last unit; whoever is
satisfied drops out and the others share what is left over. Ties go by name, never by order.
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
    parts = {each.name: _sure(each) for each in sharers}
    pool = total - sum(parts.values())
    hungry = [each for each in sharers if each.wants > parts[each.name] and each.weight > 0]
    while pool > 0 and hungry:
        for name, more in divide(pool, [(each.name, each.weight) for each in hungry]).items():
            parts[name] += more
        pool = 0
        for each in hungry:
            pool += max(parts[each.name] - each.wants, 0)
            parts[each.name] = min(parts[each.name], each.wants)
        hungry = [each for each in hungry if parts[each.name] < each.wants]
    return parts


def divide(pool: int, weights: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Split a pool by weight to the last unit: largest remainders first, ties by name."""
    whole = sum(weight for _, weight in weights)
    parts = {name: pool * weight // whole for name, weight in weights}
    left = pool - sum(parts.values())
    by_remainder = sorted(weights, key=lambda pair: (-(pool * pair[1] % whole), pair[0]))
    for name, _ in by_remainder[:left]:
        parts[name] += 1
    return parts


def _sure(sharer: Sharer) -> int:
    return min(sharer.wants, sharer.floor) if sharer.lend else sharer.floor
