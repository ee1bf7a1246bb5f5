"""The books of an engine, added up anew."""

from aliquot.engine.books.ledger import Booking, Stage
from aliquot.engine.columns import Columns
from aliquot.engine.cycle import Engine
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.policies.queues.drf import Tally
from tests.build.engines import books

Sums = dict[tuple[int, int], int]


def check_books(engine: Engine) -> None:
    """Every column is the fold of the entries; nothing is below zero."""
    state, ledger = books(engine), books(engine).ledger
    for column, sums in zip(
        (ledger.wanted, ledger.held, ledger.used, ledger.taken), ledger.fold(), strict=True
    ):
        _check(column, sums)
    staying = [entry for entry in ledger.entries.values() if entry.stage >= Stage.HELD]
    for tally in ledger.tallies:
        if isinstance(tally, Tally):
            _tallied(tally, [entry.booking for entry in staying])
    leaving = [entry for uid, entry in ledger.entries.items() if uid in state.leaving]
    for tally in state.leaving.tallies:
        if isinstance(tally, Tally):
            _tallied(tally, [entry.booking for entry in leaving])
    room: Sums = {}
    charge: Sums = {}
    for entry in leaving:
        for row, amount in entry.booking.room:
            room[row, entry.node] = room.get((row, entry.node), 0) + amount
        for slot in entry.path:
            for row, amount in entry.booking.charge:
                charge[row, slot] = charge.get((row, slot), 0) + amount
    _check(state.leaving.room, room)
    _check(state.leaving.charge, charge)


def _check(column: Columns, sums: Sums) -> None:
    filled = {(int(row), int(slot)) for row, slot in zip(*column.data.nonzero(), strict=True)}
    assert filled == {cell for cell, amount in sums.items() if amount}
    for cell in filled:
        assert column.data[cell] == min(sums[cell], LIMIT)


def _tallied(tally: Tally, bookings: list[Booking]) -> None:
    """What namespaces and gangs have, by hand."""
    namespaces: dict[object, dict[int, int]] = {}
    gangs: dict[object, dict[int, int]] = {}
    for booking in bookings:
        owners: list[tuple[dict[object, dict[int, int]], object]] = [
            (namespaces, (booking.quota, booking.namespace))
        ]
        if booking.gang is not None:
            owners.append((gangs, booking.gang))
        for sums, owner in owners:
            for row, amount in booking.charge:
                mine = sums.setdefault(owner, {})
                mine[row] = mine.get(row, 0) + amount
    for kept, fold in ((tally.namespaces, namespaces), (tally.gangs, gangs)):
        assert {k: {r: n for r, n in v.items() if n} for k, v in kept.items()} == fold
