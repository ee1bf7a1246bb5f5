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

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking, or no longer."""
        _post(self.namespaces, (booking.quota, booking.namespace), booking, sign)
        if booking.gang is not None:
            _post(self.gangs, booking.gang, booking, sign)


def _post(sums: dict[Any, Sums], key: object, booking: Booking, sign: int) -> None:
    found = sums.get(key)
    if found is None:
        found = sums[key] = {}
    for row, amount in booking.charge:
        found[row] = found.get(row, 0) + sign * amount
    if sign < 0 and not any(found.values()):
        del sums[key]
