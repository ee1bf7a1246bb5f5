"""What namespaces hold in each quota, and what gangs hold: narrower accounts than the quotas'.

Kept up to date by the ledger, booking by booking, for policies that ask for it. What is held for a
pod counts like what it uses.
"""

from typing import Any

from aliquot.engine.ledger import Booking

Sums = dict[int, int]
"""Amounts by row."""

Owner = tuple[str | None, str]
"""A namespace in a quota."""


class Tally:
    """The sums of bookings by namespace and by gang."""

    def __init__(self) -> None:
        self.namespaces: dict[Owner, Sums] = {}
        self.gangs: dict[str, Sums] = {}
        self.settled: dict[object, int] = {}
        """What somebody has worked out about a namespace or gang that has not moved since."""

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking, or no longer."""
        owner, gang = (booking.quota, booking.namespace), booking.gang
        _post(self.namespaces, owner, booking, sign)
        self.settled.pop(owner, None)
        if gang is not None:
            _post(self.gangs, gang, booking, sign)
            self.settled.pop(gang, None)


def _post(sums: dict[Any, Sums], key: object, booking: Booking, sign: int) -> None:
    found = sums.get(key)
    if found is None:
        found = sums[key] = {}
    for row, amount in booking.charge:
        found[row] = found.get(row, 0) + sign * amount
    if sign < 0 and not any(found.values()):
        del sums[key]
