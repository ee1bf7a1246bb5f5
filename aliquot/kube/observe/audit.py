"""The audit: a periodic check that the ledger agrees with the cluster.

Two things must hold: every pod that the cluster shows as bound is booked once, on its node, with
what it requests; and what quotas and nodes are charged is the sum of the bookings. Pods that are
assumed, whose binding the cluster does not show yet, are left out of the first check. The audit
only reports: it must never correct the ledger, which would hide a defect.
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
"""Seconds between two checks: a violation is seen while what led to it is still in the log."""
_PAUSE_FACTOR = 100
"""After a check, pause for so many times as long as it took: at most 1% of the time."""
_MOST_LOGGED = 20
"""Violations in the log for each check: enough to see a pattern; the metric has the number."""
_AT_ONCE = 200
"""Pods checked before other tasks have a turn, at some 10 us each: a pod that comes meanwhile must
not wait for the audit."""


class Audit:
    """Checks the ledger of a scheduler while it leads."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, health: Health) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._health = health

    async def run(self, period: float = _PERIOD) -> None:
        """Check every `period` seconds until cancelled."""
        while True:
            await asyncio.sleep(period)
            engine = self._scheduler.engine
            if engine is not None:
                began = time.perf_counter()
                await self._check(engine)
                await asyncio.sleep(_PAUSE_FACTOR * (time.perf_counter() - began))

    async def _check(self, engine: Engine) -> None:
        """Check everything; other tasks have a turn in between."""
        found: list[str] = []
        for number, violation in enumerate(violations(engine, self._scheduler.intake.mirror)):
            if violation:
                found.append(violation)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
                if engine is not self._scheduler.engine:
                    return
        for each in found[:_MOST_LOGGED]:
            _log.error("the ledger is not what the cluster says", violation=each)
        self._metrics.invariant_violations.set(len(found))
        self._health.invariants(*found)


def violations(engine: Engine, mirror: Mirror) -> Iterator[str]:
    """What is wrong with an engine's ledger; an empty string for each pod that is right."""

    def bound(uid: str) -> Pod | None:
        record = mirror.records.get(uid)
        runs = record is not None and record.alive and record.pod.node is not None
        return record.pod if record is not None and runs else None

    return engine.violations(mirror.records, bound)
