"""Columns: one int64 array per resource, over nodes, quotas or pods.

This layout decides the engine's speed: a check over 5,000 nodes reads a few contiguous arrays
instead of 5,000 objects. A resource is a row of the columns, a node, quota or pod a slot. An amount
too large for a column saturates at LIMIT; it never wraps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.gpu import MODEL_PREFIX
from aliquot.engine.model.quantity import LIMIT, Amounts

Vector = tuple[tuple[int, int], ...]
"""Amounts with each resource as its row: `((0, 500), (2, 1))`."""
_MANY_ROWS = 64
"""Rows beyond which memory counts: a cluster has some ten resources, MIG profiles included."""
_FEW = 8
"""Slots up to which a call of numpy for each row costs more than it saves."""
_LOW_BITS = 31
"""Where `exact_sum` parts an int64: 2**31 of either half add up without overflow."""
_LOW = 2**_LOW_BITS - 1


class Resources:
    """The rows: all resource names seen so far, and the columns that grow with them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.models: dict[int, None] = {}
        """The rows that are cards of one model: a part of another resource."""
        self._rows: dict[str, int] = {}
        self._columns: list[Columns] = []

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def row(self, name: str) -> int:
        """The row of a resource; a new name gets the next one, in all columns."""
        found = self._rows.get(name)
        if found is None:
            found = self._rows[name] = len(self.names)
            self.names.append(name)
            if name.startswith(MODEL_PREFIX):
                self.models[found] = None
            for columns in self._columns:
                columns.widen(len(self.names))
        return found

    def vector(self, amounts: Amounts, most: int = LIMIT) -> Vector:
        """Amounts by row, saturated. No node has LIMIT, so a request of LIMIT never fits."""
        return tuple((self.row(name), min(value, most)) for name, value in amounts)

    def attach(self, columns: "Columns") -> None:
        """Register columns, to grow with the resources."""
        self._columns.append(columns)


class Slots:
    """The slot of each name. A name keeps its slot until it is dropped; then the slot is reused."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._columns: list[Columns] = []

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def __getitem__(self, name: str) -> int:
        return self._slots[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def of(self, names: Iterable[str]) -> list[int]:
        """The slots of these names."""
        return [*map(self._slots.__getitem__, names)]

    def take(self, name: str) -> int:
        """The slot of a name, a new one if it has none."""
        found = self._slots.get(name)
        if found is None:
            if self._free:
                found = self._free.pop()
                self.names[found] = name
            else:
                found = len(self.names)
                self.names.append(name)
                for columns in self._columns:
                    columns.lengthen(len(self.names))
            self._slots[name] = found
        return found

    def drop(self, name: str) -> None:
        """Free the slot of a name."""
        slot = self._slots.pop(name)
        self.names[slot] = None
        self._free.append(slot)

    def attach(self, columns: "Columns") -> None:
        """Register columns, to grow with the slots."""
        self._columns.append(columns)


class Columns:
    """Amounts by row (resource) and slot (node or quota): `data[row]` is contiguous over slots."""

    def __init__(self, resources: Resources, slots: Slots, default: int = 0) -> None:
        self._default = default
        rows = max(len(resources), 1)
        self._adopt(self._made(rows, max(len(slots), 8)), rows)
        resources.attach(self)
        slots.attach(self)

    def get(self, row: int, slot: int) -> int:
        """One amount, as a plain int."""
        amount: int = self.cells[row * self.width + slot]
        return amount

    def add(self, slot: int, vector: Vector, sign: int) -> bool:
        """Add amounts to a slot, up to LIMIT; False if a saturated cell was subtracted from."""
        cells, width = self.cells, self.width
        exact = True
        for row, amount in vector:
            cell = row * width + slot
            before = cells[cell]
            if before >= LIMIT:
                exact = exact and sign > 0
            else:
                after = before + sign * amount
                cells[cell] = after if after < LIMIT else LIMIT
        return exact

    def move(self, into: "Columns", slots: tuple[int, ...], vector: Vector) -> bool:
        """Move amounts in these slots to other columns over the same slots; False as in `add`."""
        cells, others, width = self.cells, into.cells, self.width
        exact = True
        for row, amount in vector:
            first = row * width
            for slot in slots:
                cell = first + slot
                before, after = cells[cell], others[cell] + amount
                if before < LIMIT:
                    cells[cell] = before - amount
                else:
                    exact = False
                others[cell] = after if after < LIMIT else LIMIT
        return exact

    def fill(self, slot: int, vector: Vector) -> None:
        """Set a slot to these amounts, and to the default in every other row.

        What is default stays unwritten, so that memory of many rows and slots stays untouched.
        """
        before = self.data[:, slot]
        before[before != self._default] = self._default
        for row, amount in vector:
            self.data[row, slot] = amount

    def add_all(self, slots: Mapping[Vector, Sequence[int]]) -> None:
        """Add each vector to its slots, once for each time that it names one, up to LIMIT."""
        for vector, at in slots.items():
            if len(at) < _FEW or any(amount * len(at) >= LIMIT for _, amount in vector):
                for slot in at:
                    self.add(slot, vector, +1)
                continue
            here = np.array(at, dtype=np.int64)
            for row, amount in vector:
                column = self.data[row]
                np.add.at(column, here, amount)
                column[here] = np.minimum(column[here], LIMIT)

    def fill_all(self, slots: Mapping[Vector, Sequence[int]]) -> None:
        """Set the slots of each vector to it, as `fill` does."""
        for vector, at in slots.items():
            if len(at) < _FEW:
                for slot in at:
                    self.fill(slot, vector)
                continue
            here = np.array(at, dtype=np.int64)
            for column in self.data:
                if (column[here] != self._default).any():
                    column[here] = self._default
            for row, amount in vector:
                self.data[row, here] = amount

    def widen(self, rows: int) -> None:
        """Grow to this many rows; a quarter more are made, which keeps the cost of growing low."""
        if rows <= len(self._store):
            self.data = self._store[:rows]
        else:
            self._grow(rows, rows + rows // 4, self.width)

    def lengthen(self, slots: int) -> None:
        """Grow to at least this many slots, to twice as many unless there are very many rows."""
        if slots > self.width:
            more = slots if len(self.data) <= _MANY_ROWS else slots // 4 + 8
            self._grow(len(self.data), len(self._store), slots + more)

    def _grow(self, rows: int, made: int, slots: int) -> None:
        grown, old = self._made(made, slots), self.data
        grown[: len(old), : self.width] = old
        self._adopt(grown, rows)

    def _made(self, rows: int, slots: int) -> NDArray[np.int64]:
        if not self._default:
            return np.zeros((rows, slots), dtype=np.int64)
        return np.full((rows, slots), self._default, dtype=np.int64)

    def _adopt(self, store: NDArray[np.int64], rows: int) -> None:
        """Whole columns are read through numpy; single cells through a memoryview, twice as fast.

        Columns over the same slots grow alike, so that a cell is at the same place in all of them.
        """
        self._store = store
        self.data = store[:rows]
        self.width = store.shape[1]
        self.cells: memoryview[int] = store.data.cast("B").cast("q")


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values, in order: of few values, `np.unique` costs five times as much."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: NDArray[np.int64] = ordered[first]
    return found


def exact_sum(amounts: NDArray[np.int64]) -> int:
    """The exact sum, which may be above an int64."""
    high, low = int((amounts >> _LOW_BITS).sum()), int((amounts & _LOW).sum())
    return (high << _LOW_BITS) + low
