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

from aliquot.engine.books.ledger import Stage
from aliquot.engine.columns import Columns
from aliquot.engine.cycle import Engine
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.state import State
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
    """What is wrong, a sentence each; an empty one for each pod that is as it should be.

    What is looked at in one step is of one moment, so whoever asks may pause between two.
    """
    state = engine.state
    for uid in list(mirror.records.keys() | state.ledger.entries.keys()):
        yield _of_pod(uid, state, mirror)
    ledger = state.ledger
    columns = (ledger.wanted, ledger.held, ledger.used, ledger.taken)
    yield from [
        each
        for word, column, sums in zip(_WORDS, columns, ledger.fold(), strict=True)
        for each in _compare(state, word, column, sums)
    ]


def _of_pod(uid: str, state: State, mirror: Mirror) -> str:
    """Is a pod booked where the cluster shows it, as it asks, in the quota it belongs to?"""
    record, entry = mirror.records.get(uid), state.ledger.entries.get(uid)
    committed = entry is not None and entry.stage is Stage.COMMITTED
    bound = record is not None and record.alive and record.pod.node is not None
    if not bound:
        return f"pod {uid} is booked, and does not run" if committed else ""
    assert record is not None
    pod, ask = record.pod, state.placement.ask(record.pod.shape)
    if entry is None or not committed:
        return f"pod {pod.path} runs on {pod.node}, and is not booked"
    node = state.nodes.known.get(pod.node or "")
    # Once its node is gone, nobody knows any more by what class a pod was charged.
    charge = ask.charge(node.node_class) if node is not None else entry.booking.charge
    should = (state.tree.home(pod), charge, pod.node, ask.room)
    if entry.booking[:4] != should:
        return f"pod {pod.path} is booked as {entry.booking[:4]}, and should be as {should}"
    return ""


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
