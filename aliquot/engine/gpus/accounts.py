"""The accounts of GPUs: what the ledger's bookings take of devices and of GPU quotas.

They are tallies of the ledger, so that a booking and its GPUs are one step: no device is taken, and
no GPU quota counted, without a booking.
"""

from aliquot.engine.books.ledger import Booking
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.gpus.quotas import GpuQuotas, Usage


class GpuTally:
    """The tally of the ledger: takes devices and counts in GPU quotas."""

    def __init__(self, devices: Devices, quotas: GpuQuotas) -> None:
        self._devices = devices
        self._quotas = quotas

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        if booking.gpu is not None:
            self._devices.post(booking.gpu, sign)
            self._quotas.post(booking.namespace, booking.gpu, sign)


class GpuLeaving:
    """The tally of terminating pods: what they will free on devices and in GPU quotas."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self.used: dict[str, Usage] = {}

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking (sign +1), or stop counting it (-1)."""
        taken = booking.gpu
        if taken is None:
            return
        self._devices.post_leaving(taken, sign)
        before = self.used.get(booking.namespace, Usage())
        self.used[booking.namespace] = before.plus(taken, sign)
