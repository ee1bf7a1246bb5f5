"""Water-filling, measured: the runtime of all quotas computed anew, and after one changed request.

Quotas ask for more than the cluster has, with mins, weights and memory in bytes, so that products
exceed 64 bits. Yardsticks: the same siblings in plain ints, and a bare pass over as many cells.
"""

import random
import time
from collections.abc import Callable

import numpy as np

from aliquot.bench.figure import Figure
from aliquot.collector import tune_collector
from aliquot.engine import Resources, RuntimeTree, Slots, fill

_GIB = 2**30
_ROUNDS = 15
"""Runs of each measurement; the best counts, as the others were disturbed."""
_CHANGES = 2_000
"""Changed requests measured: enough for a p99."""


def share(progress: Callable[[str], None]) -> list[Figure]:
    """Runtime of 2,000 siblings, and of a tree of 10,000 quotas."""
    progress("runtime of 2,000 siblings, 2 resources")
    siblings = _ContendedTree(levels=1, fanout=2_000, resources=2)
    tune_collector()
    flat, ints = siblings.compute_all(), siblings.in_plain_ints()
    progress("runtime of 10,000 quotas, 8 resources, 4 levels")
    tree = _ContendedTree(levels=4, fanout=10, resources=8)
    tune_collector()
    whole, bare = tree.compute_all(), _bare_pass(8 * len(tree.slots))
    changes = tree.change_one()
    one, slow = changes[len(changes) // 2], changes[int(len(changes) * 0.99)]
    progress("the same in ten trees")
    trees = _ContendedTree(levels=4, fanout=10, resources=8, roots=10)
    tune_collector()
    growth, changed = _growth(tree, trees), trees.change_one()
    return [
        Figure("2,000 siblings x 2 resources, all", flat, "ms", "<= 1"),
        Figure("the same in plain ints", ints, "ms"),
        Figure("gained by arrays", ints / flat, "x"),
        Figure("10,000 quotas x 8 resources on 4 levels, all", whole, "ms", "<= 15"),
        Figure("one bare numpy pass over as many cells", bare, "ms"),
        Figure("all of it, in bare passes", whole / bare, "x"),
        Figure("one changed request there, median", one, "us", "<= 200"),
        Figure("one changed request there, p99", slow, "us", "<= 500"),
        Figure("all of it, in changed requests", 1e3 * whole / one, "x"),
        Figure("growth from one tree to ten, all", growth, "x", "<= 1.2"),
        Figure("the same, one request", changed[len(changed) // 2] / one, "x", "<= 1.2"),
    ]


class _ContendedTree:
    """Full trees of quotas that ask for more than the cluster has.

    With several roots, the quotas of the first level are parted among them, and so is the total.
    """

    def __init__(self, levels: int, fanout: int, resources: int, roots: int = 1) -> None:
        self._rng = random.Random(fanout)
        self._units = [_GIB if row % 4 == 1 else 1_000 for row in range(resources)]
        rows = Resources()
        for row in range(resources):
            rows.row(f"example.com/r{row}")
        self.slots = Slots()
        self.tree = RuntimeTree(rows, self.slots, self.slots.take(""))
        self._roots = [self.slots[""]]
        for number in range(1, roots):
            self._roots.append(self.slots.take(f"<tree {number}>"))
            self.tree.add_root(self._roots[-1])
        names = [""]
        for level in range(levels):
            below = fanout ** (levels - level - 1)
            names = [self._add(name, i, below) for name in names for i in range(fanout)]
        self.leaves = [self.slots[name] for name in names]
        for row, unit in enumerate(self._units):
            for root in self._roots:
                self.tree.total(row, 15 * unit * len(names) // roots, root=root)
        self._ask_all()
        self.tree.refresh()

    def compute_all(self) -> float:
        """Milliseconds of a refresh after every request changed; the best of `_ROUNDS`."""
        return min(self.compute_once() for _ in range(_ROUNDS)) * 1e3

    def compute_once(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """Seconds of a refresh after every request changed."""
        self._ask_all()
        begin = clock()
        self.tree.refresh()
        return clock() - begin

    def change_one(self) -> list[float]:
        """Microseconds of a refresh after one request changed by a unit or two, sorted.

        Of processor time: others that run meanwhile would be all that a p99 shows.
        """
        times = []
        for _ in range(_CHANGES):
            slot, row = self._rng.choice(self.leaves), self._rng.randrange(len(self._units))
            more = self._rng.choice((-2, -1, 1, 2)) * self._units[row]
            asked = max(self.tree.request.get(row, slot) + more, 0)
            self.tree.ask(slot, row, asked)
            begin = time.process_time()
            self.tree.refresh()
            times.append((time.process_time() - begin) * 1e6)
        return sorted(times)

    def in_plain_ints(self) -> float:
        """Milliseconds of the siblings' water-filling in plain ints."""
        sums = []
        for row, unit in enumerate(self._units):
            wants = self.tree.limited.data[row, self.leaves]
            guaranteed = np.minimum(wants, 5 * unit).tolist()
            sums.append(
                (
                    15 * unit * len(guaranteed),
                    wants.tolist(),
                    guaranteed,
                    [40 * unit] * len(guaranteed),
                )
            )
        begin = time.perf_counter()
        for each in sums:
            fill(*each)
        return (time.perf_counter() - begin) * 1e3

    def _add(self, parent: str, number: int, leaves: int) -> str:
        name = f"{parent}/{number}"
        low, high = self._rng.randint(5, 14) * leaves, self._rng.randint(20, 59) * leaves
        self.tree.set(
            self.slots.take(name),
            self.slots[parent] if parent else self._roots[number % len(self._roots)],
            name,
            tuple((row, low * unit) for row, unit in enumerate(self._units)),
            tuple((row, high * unit) for row, unit in enumerate(self._units)),
        )
        return name

    def _ask_all(self) -> None:
        for row, unit in enumerate(self._units):
            for slot in self.leaves:
                self.tree.ask(slot, row, self._rng.randrange(50) * unit)


def _growth(one: _ContendedTree, ten: _ContendedTree) -> float:
    """How many times as long ten trees take: by turns, of processor time, the best of each."""
    clock = time.process_time
    rounds = [(one.compute_once(clock), ten.compute_once(clock)) for _ in range(_ROUNDS)]
    return min(each for _, each in rounds) / min(each for each, _ in rounds)


def _bare_pass(cells: int) -> float:
    """Milliseconds of the least that water-filling must do: multiply, divide, compare each cell."""
    values = np.random.default_rng(0).integers(1, 2**30, cells)
    times = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        np.minimum(values * 1_000 // (values + 1), values)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3
