"""What each quota's pods that are not preemptible hold: they live within min (`policies.shields`).

A tally of the ledger, so that asking whether one more may start costs no walk over a quota's pods.
"""

from aliquot.engine.books.ledger import Booking

Amounts = dict[int, int]


class LastingTally:
    """The sums of bookings of pods that are not preemptible, by quota and row."""

    def __init__(self) -> None:
        self._sums: dict[str, Amounts] = {}

    def of(self, quota: str) -> Amounts:
        """What the quota's own pods of this kind use or are nominated for."""
        return self._sums.get(quota, {})

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        if booking.preemptible or booking.quota is None:
            return
        sums = self._sums.setdefault(booking.quota, {})
        for row, amount in booking.charge:
            sums[row] = sums.get(row, 0) + sign * amount
            if not sums[row]:
                del sums[row]
        if not sums:
            del self._sums[booking.quota]
