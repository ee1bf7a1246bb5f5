"""A check that never ends: is the ledger what the cluster says?

Now and then the books are compared with what they would be had they just been opened: every pod
that the cluster shows as bound is booked once, where it runs, with what it asks for; and what
quotas and nodes are charged is the sum of the bookings. What was decided and is still on its way to
the cluster is ours alone, and left out of the first comparison.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping

import structlog

from aliquot.engine.columns import Columns, Vector
from aliquot.engine.cycle import Engine
from aliquot.engine.ledger import Stage
from aliquot.engine.quantity import LIMIT
from aliquot.engine.state import State
from aliquot.kube.health import Health
from aliquot.kube.metrics import Metrics
from aliquot.kube.scheduler import Scheduler
from aliquot.mirror.mirror import Mirror

_log = structlog.get_logger()

_PERIOD = 30.0
_PART_OF_TIME = 100
_MOST_TOLD = 20
_WORDS = ("wanted", "held", "used", "taken")


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
            if engine is None:
                continue
            began = time.perf_counter()
            found = list(violations(engine, self._scheduler.view.mirror))
            for each in found[:_MOST_TOLD]:
                _log.error("the ledger is not what the cluster says", violation=each)
            self._metrics.invariant_violations.set(len(found))
            self._health.invariants(*found)
            await asyncio.sleep(_PART_OF_TIME * (time.perf_counter() - began))


def violations(engine: Engine, mirror: Mirror) -> Iterator[str]:
    """What is wrong, a sentence each."""
    fresh = Engine(engine.policy, engine.state.knobs)
    mirror.replay(fresh.apply)
    ours, theirs = _bound(engine.state), _bound(fresh.state)
    for uid in ours.keys() | theirs.keys():
        if ours.get(uid) != theirs.get(uid):
            path = mirror.records[uid].pod.path if uid in mirror.records else uid
            yield f"pod {path} is booked with {ours.get(uid)}, the cluster says {theirs.get(uid)}"
    ledger = engine.state.ledger
    columns = (ledger.wanted, ledger.held, ledger.used, ledger.taken)
    for word, column, sums in zip(_WORDS, columns, ledger.fold(), strict=True):
        yield from _compare(engine.state, word, column, sums)


def _bound(state: State) -> dict[str, object]:
    """Every pod that the cluster shows as bound: its node and quota, and what it takes there."""
    names = state.resources.names

    def named(vector: Vector) -> dict[str, int]:
        return {names[row]: amount for row, amount in vector}

    return {
        uid: (each.booking.node, each.booking.quota, named(each.booking.room))
        for uid, each in state.ledger.entries.items()
        if each.stage is Stage.COMMITTED
    }


def _compare(
    state: State, word: str, columns: Columns, sums: Mapping[tuple[int, int], int]
) -> Iterator[str]:
    rows, slots = columns.data.nonzero()
    places = state.nodes.slots if word == "taken" else state.tree.slots
    for row, slot in sorted({*sums, *zip(rows.tolist(), slots.tolist(), strict=True)}):
        have, should = int(columns.data[row, slot]), min(sums.get((row, slot), 0), LIMIT)
        if have != should:
            what = f"{word} of {state.resources.names[row]} at {places.names[slot] or 'the root'}"
            yield f"{what} is {have}, the bookings there add up to {should}"
