"""Dominant resource fairness: the dominant shares of namespaces, by their weight, and of gangs.

A dominant share is the largest part that a namespace or gang has of any resource of the cluster. It
is compared as a whole number of parts so fine that different fractions never count as equal.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from aliquot.engine.books.ledger import Booking
from aliquot.engine.model.pod import GPU_MEMORY
from aliquot.engine.policies.usage import ratio
from aliquot.engine.state import State

Sums = dict[int, int]
"""Amounts by row."""

Owner = tuple[str | None, str]
"""A namespace in a quota."""

_UNCOUNTED = ("pods", GPU_MEMORY)
_NONE: Sums = {}


class DominantShares:
    """The dominant shares of namespaces and gangs, as the ledger has them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._held, self._leaving = Tally(), Tally()
        state.ledger.tallies.append(self._held)
        state.leaving.tallies.append(self._leaving)
        self.totals: dict[int, int] = {}
        """What the cluster has of the resources that count, by row."""
        self.refresh()

    def refresh(self) -> None:
        """Read the nodes' totals anew; forget shares, for weights may have changed."""
        self._held.settled.clear()
        resources, total = self._state.resources, self._state.nodes.total
        self.totals = {
            row: total.get(name, 0)
            for row, name in enumerate(resources.names)
            if name not in _UNCOUNTED and row not in resources.models
        }

    def weight(self, namespace: str) -> int:
        """The weight of a namespace; 1 by default."""
        return self._state.weights.get(namespace, 1)

    def namespaces(self, quota: str) -> list[str]:
        """The namespaces that use or are nominated for something in a quota, by name."""
        return sorted(namespace for each, namespace in self._held.namespaces if each == quota)

    def namespace_turn(self, quota: str, namespace: str) -> int:
        """The dominant share over weight of a namespace in a quota, as `ratio` has it."""
        key, settled = (quota, namespace), self._held.settled
        found = settled.get(key)
        if found is None:
            sums = self._held.namespaces.get(key, _NONE)
            found = settled[key] = self._parts(sums, self.weight(namespace))
        return found

    def gang_turn(self, gang: str) -> int:
        """The dominant share of a gang, as `ratio` has it."""
        settled = self._held.settled
        found = settled.get(gang)
        if found is None:
            found = settled[gang] = self._parts(self._held.gangs.get(gang, _NONE), 1)
        return found

    def of_namespace(self, quota: str, namespace: str) -> Sums:
        """What a namespace has in a quota once the leaving pods are gone."""
        key = quota, namespace
        held, leaving = self._held.namespaces.get(key, _NONE), self._leaving.namespaces
        return _less(held, leaving.get(key, _NONE))

    def of_gang(self, gang: str) -> Sums:
        """What a gang has once the leaving pods are gone."""
        return _less(self._held.gangs.get(gang, _NONE), self._leaving.gangs.get(gang, _NONE))

    def share(self, *sums: Mapping[int, int]) -> Fraction:
        """The dominant share of these amounts together."""
        return max((part for part, _ in self._fractions(*sums)), default=Fraction(0))

    def dominant(self, sums: Mapping[int, int]) -> tuple[int, int]:
        """The dominant resource of these amounts, and the cluster's total of it."""
        _, row = max(self._fractions(sums), key=lambda pair: (pair[0], -pair[1]))
        return row, self.totals.get(row, 0)

    def _fractions(self, *several: Mapping[int, int]) -> list[tuple[Fraction, int]]:
        rows = sorted({row for sums in several for row in sums if row in self.totals})
        found = []
        for row in rows:
            used, total = sum(sums.get(row, 0) for sums in several), self.totals[row]
            found.append((Fraction(used, total) if total else Fraction(bool(used)), row))
        return found

    def _parts(self, sums: Sums, weight: int) -> int:
        most, of = 0, 1
        totals = self.totals
        for row, used in sums.items():
            if used and row in totals:
                total = totals[row]
                if not total:
                    used = total = 1
                if used * of > most * total:
                    most, of = used, total
        return ratio(most, of * weight)


def _less(sums: Sums, others: Sums) -> Sums:
    return {row: amount - others.get(row, 0) for row, amount in sums.items()} if others else sums


class Tally:
    """The sums of bookings by namespace and by gang."""

    def __init__(self) -> None:
        self.namespaces: dict[Owner, Sums] = {}
        self.gangs: dict[str, Sums] = {}
        self.settled: dict[object, int] = {}
        """Shares worked out for namespaces and gangs, until a booking of theirs changes."""

    def post(self, booking: Booking, sign: int) -> None:
        """Add a booking (sign +1), or take it out (-1)."""
        owner, gang = (booking.quota, booking.namespace), booking.gang
        _post(self.namespaces, owner, booking, sign)
        self.settled.pop(owner, None)
        if gang is not None:
            _post(self.gangs, gang, booking, sign)
            self.settled.pop(gang, None)


def _post(sums: dict[Any, Sums], key: object, booking: Booking, sign: int) -> None:
    if not booking.charge:  # such as of a stranded pod
        return
    found = sums.get(key)
    if found is None:
        found = sums[key] = {}
    for row, amount in booking.charge:
        found[row] = found.get(row, 0) + sign * amount
    if sign < 0 and not any(found.values()):
        del sums[key]
