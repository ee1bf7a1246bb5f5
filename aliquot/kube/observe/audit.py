"""A check that never ends: is the ledger what the cluster says?

Now and then the books are compared with what they would be had they just been opened: every pod
that the cluster shows as bound is booked once, where it runs, with what it asks for; and what
quotas and nodes are charged is the sum of the bookings. What was decided and is still on its way to
the cluster is ours alone, and left out of the first comparison.
"""

import asyncio
import time
from collections.abc import Iterator

import structlog

from aliquot.engine import Engine, Pod
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.mirror.mirror import Mirror

_log = structlog.get_logger()

_PERIOD = 30.0
_PART_OF_TIME = 100
_MOST_TOLD = 20
_AT_ONCE = 2000
"""How many pods are looked at without a pause."""


class Audit:
    """Looks at the books of a scheduler while it leads."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, health: Health) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._health = health

    async def run(self, period: float = _PERIOD) -> None:
        """Look every so often, for as long as this is not cancelled."""
        while True:
            await asyncio.sleep(period)
            engine = self._scheduler.engine
            if engine is not None:
                began = time.perf_counter()
                await self._look(engine)
                await asyncio.sleep(_PART_OF_TIME * (time.perf_counter() - began))

    async def _look(self, engine: Engine) -> None:
        """Look at everything, with pauses in which others go on."""
        found: list[str] = []
        for number, violation in enumerate(violations(engine, self._scheduler.view.mirror)):
            if violation:
                found.append(violation)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
                if engine is not self._scheduler.engine:
                    return
        for each in found[:_MOST_TOLD]:
            _log.error("the ledger is not what the cluster says", violation=each)
        self._metrics.invariant_violations.set(len(found))
        self._health.invariants(*found)


def violations(engine: Engine, mirror: Mirror) -> Iterator[str]:
    """What is wrong with the books of an engine, by the pods that the cluster shows as bound."""

    def bound(uid: str) -> Pod | None:
        record = mirror.records.get(uid)
        runs = record is not None and record.alive and record.pod.node is not None
        return record.pod if record is not None and runs else None

    return engine.violations(mirror.records, bound)
