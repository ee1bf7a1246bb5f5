"""What the ledger's bookings mean for devices and for quotas on GPUs: kept in step, both together.

Check and reserve are one step because there is one book: what it books is taken from the devices
and counted in the quota at once, and what it takes back is given back at once.
"""

from collections import Counter

from aliquot.engine.books.ledger import Booking
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.gpus.quotas import GpuQuotas, Usage
from aliquot.engine.model.gpu import NO_GPU_AMOUNT, GpuAmount


class GpuTally:
    """Takes from devices and counts in quotas."""

    def __init__(self, devices: Devices, quotas: GpuQuotas) -> None:
        self._devices = devices
        self._quotas = quotas

    def post(self, booking: Booking, sign: int) -> None:
        """Count a booking, or no longer."""
        if booking.gpu is not None:
            self._devices.post(booking.gpu, sign)
            self._quotas.post(booking.namespace, booking.gpu, sign)


class GpuLeaving:
    """What will come free once those who are leaving have left."""

    def __init__(self) -> None:
        self.devices: dict[str, GpuAmount] = {}
        self.pods: Counter[str] = Counter()
        """How many leave each device."""
        self.used: dict[str, Usage] = {}

    def post(self, booking: Booking, sign: int) -> None:
        """Somebody is leaving, or no longer."""
        taken = booking.gpu
        if taken is None:
            return
        for name, amount in zip(taken.devices, taken.amounts, strict=True):
            self.devices[name] = self.devices.get(name, NO_GPU_AMOUNT).plus(amount, sign)
            self.pods[name] += sign
        before = self.used.get(booking.namespace, Usage())
        self.used[booking.namespace] = before.plus(taken, sign)
