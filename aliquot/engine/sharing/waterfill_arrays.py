"""Water-filling of many totals at once: the rules of `waterfill`, over arrays.

A *family* is one parent's children in one resource: neighbours in flat arrays, in order of name.
All families of a level are shared together, each from its own total, so that the number of numpy
calls depends on the rounds, which are few, and not on the families.

Everything is an exact int64. Weight times pool may need twice as many bits: families where it fits
are divided directly, larger ones digit by digit as in long division, and those with enormous
weights by the plain ints of `waterfill`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.sharing import waterfill

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

_MOST = 2**63 - 1
"""The largest int64."""
_HALF = 2**31
"""Sums that may not fit an int64 are added as high and low halves."""
_LONGEST = 56
"""Bits of the largest sum of weights that is divided digit by digit: a digit then has at least
six bits, so that no division takes more than eleven steps."""
_FEW_FAMILIES, _FEW_MEMBERS = 8, 32
"""So few are shared in plain ints, which costs less than the rounds of arrays that are left: most
rounds are of the few members that want what others have left."""


class Families:
    """Where each family begins and how many members it has; none is empty."""

    def __init__(self, counts: Ints) -> None:
        self.counts = counts
        ends = counts.cumsum()
        self.starts = ends - counts
        self.size = int(ends[-1])
        self.largest = int(np.maximum.reduce(counts))

    def spread(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Each family's value, for each of its members."""
        return values.repeat(self.counts)

    def some(self, counts: Ints) -> Ints:
        """The indices of the first members of each family, this many of each."""
        ends = counts.cumsum()
        places: Ints = (self.starts - ends + counts).repeat(counts)
        return places + np.arange(places.size)

    def sums(self, values: Ints) -> Ints:
        """The sum over each family: exact up to LIMIT and beyond, and never wrapped."""
        if int(np.maximum.reduce(values)) * self.largest <= _MOST:
            return np.add.reduceat(values, self.starts)
        low = np.add.reduceat(values % _HALF, self.starts)
        high = np.add.reduceat(values // _HALF, self.starts) + low // _HALF
        fits = high <= _HALF
        return np.where(fits, np.where(fits, high, 0) * _HALF + low % _HALF, _MOST)


def floors(families: Families, totals: Ints, mins: Ints, scales: Ints) -> Ints:
    """The floor of each: see `waterfill.floors`."""
    short = families.sums(mins) > totals
    if not short.any():
        return mins
    left = np.maximum(totals - families.sums(np.where(scales, 0, mins)), 0)
    chosen = families.spread(short) & (scales > 0) & (mins > 0)
    parts = mins.copy()
    for batch in _batches(families, chosen, left, mins):
        parts[batch.at] = _in_proportion(batch)
    return parts


def fill(families: Families, totals: Ints, wants: Ints, sure: Ints, weights: Ints) -> Ints:
    """The part of each: see `waterfill.fill`."""
    pools = totals - families.sums(sure)
    chosen = (wants > sure) & (weights > 0) & families.spread(pools > 0)
    parts = sure.copy()
    for batch in _batches(families, chosen, pools, weights):
        needs = wants.take(batch.at) - sure.take(batch.at)
        parts[batch.at] += _fill_in_ints(batch, needs) if batch.in_ints else _fill(batch, needs)
    return parts


@dataclass(slots=True)
class _Batch:
    """Families whose pools are divided in the same way, each in proportion to its values."""

    size: Literal["small", "large", "huge"]
    families: Families
    pools: Ints
    values: Ints
    at: Ints
    """The indices of the members in the arrays that the batch was taken from."""

    @property
    def in_ints(self) -> bool:
        """Is it filled in plain ints: are its numbers huge, or its members few?"""
        few = self.families.counts.size <= _FEW_FAMILIES and self.values.size <= _FEW_MEMBERS
        return few or self.size == "huge"

    def lists(self) -> Iterator[tuple[slice, int, list[int]]]:
        """Family by family: its place in the batch, its pool and its values as plain ints."""
        ends = np.add(self.families.starts, self.families.counts)
        for start, end, pool in zip(self.families.starts, ends, self.pools, strict=True):
            place = slice(int(start), int(end))
            yield place, int(pool), self.values[place].tolist()

    def part(self, chosen: Flags, pools: Ints) -> "_Batch | None":
        """Only the members chosen, and the families that still have any."""
        counts = np.add.reduceat(chosen, self.families.starts, dtype=np.int64)
        alive = counts.nonzero()[0]
        if not alive.size:
            return None
        at = chosen.nonzero()[0]
        families = Families(counts.take(alive))
        return _Batch(self.size, families, pools.take(alive), self.values.take(at), at)


def _batches(families: Families, chosen: Flags, pools: Ints, values: Ints) -> Iterator[_Batch]:
    """The members chosen, in batches by how large the numbers are."""
    whole = _Batch("small", families, pools, values, families.starts).part(chosen, pools)
    if whole is None:
        return
    largest = np.maximum.reduceat(whole.values, whole.families.starts)
    small = whole.pools <= _MOST // largest
    huge = whole.families.sums(whole.values) >= 2**_LONGEST
    ways: tuple[tuple[Literal["small", "large", "huge"], Flags], ...] = (
        ("small", small & ~huge),
        ("large", ~small & ~huge),
        ("huge", huge),
    )
    for size, which in ways:
        if which.all():
            whole.size = size
            yield whole
            return
        batch = whole.part(whole.families.spread(which), whole.pools)
        if batch is not None:
            batch.size, batch.at = size, whole.at.take(batch.at)
            yield batch


def _in_proportion(batch: _Batch) -> Ints:
    """Each member's part of its family's pool, rounded down."""
    if batch.size != "huge":
        return _divided(batch, batch.families.sums(batch.values))[0]
    parts = np.empty_like(batch.values)
    for place, pool, values in batch.lists():
        whole = sum(values)
        parts[place] = [pool * value // whole for value in values]
    return parts


def _fill_in_ints(batch: _Batch, needs: Ints) -> Ints:
    """What each member gets, family by family."""
    given = np.empty_like(needs)
    for place, pool, weights in batch.lists():
        given[place] = waterfill.fill(pool, needs[place].tolist(), [0] * len(weights), weights)
    return given


def _fill(batch: _Batch, needs: Ints) -> Ints:
    """What each member gets, round by round, until nothing is left or no member wants more."""
    given = np.zeros_like(needs)
    at: Ints = np.arange(needs.size)
    rest: _Batch | None = batch
    while rest is not None:
        if rest.in_ints:
            given[at] += _fill_in_ints(rest, needs)
            break
        shares = _split(rest)
        unmet = shares < needs
        np.minimum(shares, needs, out=shares)
        given[at] += shares
        pools = rest.pools - np.add.reduceat(shares, rest.families.starts)
        unmet &= rest.families.spread(pools > 0)
        needs -= shares
        rest = rest.part(unmet, pools)
        if rest is not None:
            needs, at = needs.take(rest.at), at.take(rest.at)
    return given


def _split(batch: _Batch) -> Ints:
    """Split each pool by weight, to the last unit: see `waterfill.split`."""
    families = batch.families
    wholes = np.add.reduceat(batch.values, families.starts)
    parts, remainders = _divided(batch, wholes)
    left = batch.pools - np.add.reduceat(parts, families.starts)
    if left.any():
        parts[_largest(families, wholes, remainders, left)] += 1
    return parts


def _largest(families: Families, wholes: Ints, remainders: Ints, left: Ints) -> Ints:
    """Where the largest remainders are, as many of each family as it has left, ties in order.

    Family, remainder and place are sorted as one integer wherever they fit: families are in order
    already, which a stable sort makes use of. Sorting by two keys takes fifteen times as long.
    """
    bits = int(wholes.max()).bit_length()
    places = families.largest.bit_length()
    family = np.arange(families.counts.size)
    chosen = families.some(left)
    if bits + places + families.counts.size.bit_length() > 63:
        order: Ints = np.lexsort((-remainders, families.spread(family)))
        return order.take(chosen)
    bases = (family << (bits + places)) + ((2**bits - 1) << places) - families.starts
    keys = families.spread(bases)
    keys += np.arange(families.size)
    keys -= remainders << places
    keys.sort(kind="stable")
    ranks: Ints = keys.take(chosen) & (2**places - 1)
    return ranks + families.starts.repeat(left)


def _divided(batch: _Batch, wholes: Ints) -> tuple[Ints, Ints]:
    """Value times pool by whole, for each member: quotient and remainder."""
    values = batch.values
    pools, wholes = batch.families.spread(batch.pools), batch.families.spread(wholes)
    if batch.size == "small":
        remainders = values * pools
        parts = remainders // wholes
        remainders -= parts * wholes
        return parts, remainders
    bits = 62 - int(wholes.max()).bit_length()
    parts = np.zeros_like(values)
    remainders = np.zeros_like(values)
    for shift in reversed(range(0, int(pools.max()).bit_length(), bits)):
        remainders = (remainders << bits) + values * ((pools >> shift) & (2**bits - 1))
        digits = remainders // wholes
        remainders -= digits * wholes
        parts = (parts << bits) + digits
    return parts, remainders
