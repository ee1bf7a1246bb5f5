"""The figures of runtime shares, and two ways to compute them: by cell, and by generation.

Both follow the rules of `waterfill` and give the same numbers. For a dozen siblings one numpy call
costs as much as the whole sum in plain ints; for ten thousand, plain ints cost a hundred times as
much.
"""

import numpy as np

from aliquot.engine.columns import Columns, Resources, Slots
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.sharing import waterfill_arrays
from aliquot.engine.sharing.tree_shape import Ints, TreeShape
from aliquot.engine.sharing.waterfill import fill, floors


class ShareFigures:
    """Per quota and resource: request, min, max and weight in; scaled min and runtime out."""

    def __init__(self, resources: Resources, slots: Slots, shape: TreeShape) -> None:
        self._shape = shape
        self.own = Columns(resources, slots)
        self.min = Columns(resources, slots)
        self.max = Columns(resources, slots, default=LIMIT)
        self.weight = Columns(resources, slots)
        self.request = Columns(resources, slots)
        self.limited = Columns(resources, slots)
        self.scaled_min = Columns(resources, slots)
        self.runtime = Columns(resources, slots)
        self.guaranteed = Columns(resources, slots)
        """At the root, what mins are scaled down to, if that is more than there is to share."""
        flags = Resources()
        self.flags = Columns(flags, slots, default=1)
        self.lend, self.scale = flags.row("lend"), flags.row("scale")

    def limit(self, row: int, slot: int) -> bool:
        """Add up the request of a quota; has its limited request (at most max) changed?"""
        base = row * self.runtime.width
        cell, limited = base + slot, self.limited.cells
        children = self._shape.children.get(slot, ())
        request = self.own.cells[cell] + sum([limited[base + child] for child in children])
        if not self.flags.get(self.lend, slot):
            request = max(request, self.min.cells[cell])
        self.request.cells[cell] = min(request, LIMIT)
        return put(self.limited, row, slot, min(request, self.max.cells[cell]))

    def share_out(self, row: int, parent: int) -> list[int]:
        """Share one parent's runtime among its children; returns those whose runtime changed."""
        base, children = row * self.runtime.width, self._shape.children[parent]
        cells = [base + child for child in children]
        runtime, scaled = self.runtime.cells, self.scaled_min.cells
        total = runtime[base + parent]
        lends = _read(self.flags, self.lend, children)
        scales = _read(self.flags, self.scale, children)
        least = max(total, self.guaranteed.cells[base + parent])
        sure = floors(least, [self.min.cells[cell] for cell in cells], scales)
        for cell, floor in zip(cells, sure, strict=True):
            scaled[cell] = floor
        wants = [self.limited.cells[cell] for cell in cells]
        sure = [
            want if want < floor and lend else floor
            for want, floor, lend in zip(wants, sure, lends, strict=True)
        ]
        parts = fill(total, wants, sure, [self.weight.cells[cell] for cell in cells])
        changed = []
        for child, cell, part in zip(children, cells, parts, strict=True):
            if runtime[cell] != part:
                runtime[cell] = part
                changed.append(child)
        return changed

    def limit_all(self, rows: Ints, slots: Ints, parents: Ints, below: Ints | None) -> Ints:
        """`limit` for a generation in these rows, given the limited requests of the one below."""
        cells = self._cells(rows, slots)
        request = _flat(self.own).take(cells)
        if below is not None:
            counts = self._shape.layout().count.take(slots.take(parents))
            sums = waterfill_arrays.Families(_tile(counts, rows)).sums(below)
            at = np.add.outer(np.arange(rows.size) * slots.size, parents).ravel()
            own = request.take(at)
            request[at] = own + np.minimum(sums, LIMIT - own)
        lends = self.flags.data[self.lend].take(slots)
        if not lends.all():
            kept = np.where(_tile(lends, rows), 0, _flat(self.min).take(cells))
            np.maximum(request, kept, out=request)
        limited: Ints = np.minimum(request, _flat(self.max).take(cells))
        _flat(self.request)[cells] = request
        _flat(self.limited)[cells] = limited
        return limited

    def share_out_all(self, rows: Ints, parents: Ints) -> set[int]:
        """`share_out` in each of these rows for each of these parents."""
        counts, slots = self._shape.layout().children(parents)
        cells = self._cells(rows, slots)
        families = waterfill_arrays.Families(_tile(counts, rows))
        above = self._cells(rows, parents)
        totals = _flat(self.runtime).take(above)
        least = np.maximum(totals, _flat(self.guaranteed).take(above))
        scales = _tile(self.flags.data[self.scale].take(slots), rows)
        floor = waterfill_arrays.floors(families, least, _flat(self.min).take(cells), scales)
        _flat(self.scaled_min)[cells] = floor
        wants = _flat(self.limited).take(cells)
        lends = self.flags.data[self.lend].take(slots)
        sure = np.minimum(wants, floor)
        if not lends.all():
            sure = np.where(_tile(lends, rows), sure, floor)
        parts = waterfill_arrays.fill(families, totals, wants, sure, _flat(self.weight).take(cells))
        differ = parts != _flat(self.runtime).take(cells)
        _flat(self.runtime)[cells] = parts
        return set(slots[differ.reshape(rows.size, -1).any(axis=0)].tolist())

    def _cells(self, rows: Ints, slots: Ints) -> Ints:
        """Where these slots are in each of these rows, row by row."""
        cells: Ints = np.add.outer(rows * self.runtime.width, slots).ravel()
        return cells


def put(columns: Columns, row: int, slot: int, amount: int) -> bool:
    """Write one amount, up to LIMIT; has it changed?"""
    cell, amount = row * columns.width + slot, min(amount, LIMIT)
    if columns.cells[cell] == amount:
        return False
    columns.cells[cell] = amount
    return True


def _read(columns: Columns, row: int, slots: list[int]) -> list[int]:
    base, cells = row * columns.width, columns.cells
    return [cells[base + slot] for slot in slots]


def _tile(values: Ints, rows: Ints) -> Ints:
    """The same values for each row."""
    return values if rows.size == 1 else np.tile(values, rows.size)


def _flat(columns: Columns) -> Ints:
    """The columns as one array, in which a cell is at `row * width + slot`."""
    return columns.data.reshape(-1)
