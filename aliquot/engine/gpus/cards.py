"""The cards of all nodes, in columns: what each has free, how loaded it is, and of what kind.

A card has a *place*: a row of the columns, by its index on its node, and the slot of the node. So a
question to the cards of all nodes, or of some, is a few numpy calls, however many there are. Only
ready cards of known nodes have a place; what is no card fits nothing. `Devices` keeps the columns:
a booking writes the places of its own cards, and no others.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.gpu import NO_GPU_AMOUNT, WHOLE_GPU, Device, GpuAmount, GpuAsk
from aliquot.engine.model.knobs import DevicePlacement

MOST_POINTS = 1000
"""The highest load of a card: percentages, weighted by tenths (see `_LOADS`)."""
MOST = 2**42
"""Capacity and usage of a device saturate here: 4 TiB, or as many milli-TFLOPs, is more than any
device has, and its product with WHOLE_GPU fits an int64."""

_TOO_MUCH = 2 * MOST
"""No card has this."""
_FREE, _HAS, _PARTS = slice(0, 2), slice(2, 4), slice(0, 4)
"""What a card has free, and has: compute, then memory; both, for requests of parts of cards."""
_LOAD, _POINTS, _IDLE, _BROKEN, _THERE, _MODEL, _VENDOR, _POOL, _INDEX, _NUMBER = range(4, 14)
_LEAVING = slice(14, 16)
_ROWS = 16
_EVERY = slice(None)
_COUNT, _SUM, _MEAN = range(3)
"""Of each node: how many cards it has, at least 1; the sum of their loads; its points by that."""
_PERCENT = 100
_LOADS = (3, 7)
"""How compute and memory count in the load of a card, in tenths; memory weighs more, because pods
can share compute over time, but not memory."""
_ABSENT = -1
"""What a place without a card has free: less than any pod asks for."""
_LARGEST_INDEX = 2**31
_MOST_MASKS = 256
"""Kinds of cards for which a mask is kept; pods tell apart some dozens of models and indices."""

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]
Kind = tuple[str, str, str, tuple[int, ...]]
"""What a pod asks of its cards: model, vendor, pool, indices; empty if any will do."""
Slots = Column | int | None
"""Nodes: those in these slots, the one in this slot, or all."""


class Card:
    """What is used of one card; and its place in the columns, if it takes pods."""

    __slots__ = ("has", "leaving", "number", "place", "pods", "pods_leaving", "tflops", "vram")

    def __init__(self, number: int) -> None:
        self.number = number
        """Which card it is, from 1 on; used again once it is forgotten."""
        self.has = NO_GPU_AMOUNT
        """Its capacity, at most `MOST`; none of a card that only pods know of."""
        self.tflops = self.vram = self.pods = 0
        """What is used of it, and by how many pods."""
        self.leaving = NO_GPU_AMOUNT
        """What of it terminating pods hold."""
        self.pods_leaving = 0
        self.place: tuple[int, int] | None = None

    def resize(self, capacity: GpuAmount) -> None:
        """Give it another capacity."""
        self.has = GpuAmount(min(capacity.tflops, MOST), min(capacity.vram, MOST))

    def use(self, amount: GpuAmount, sign: int) -> None:
        """Count an amount as used (sign +1), or no longer (-1)."""
        tflops, vram = amount
        self.tflops += sign * (tflops if tflops < MOST else MOST)
        self.vram += sign * (vram if vram < MOST else MOST)

    @property
    def free(self) -> GpuAmount:
        """What is left of it."""
        return GpuAmount(self.has.tflops - self.tflops, self.has.vram - self.vram)

    @property
    def load(self) -> int:
        """How much of it is used, of MOST_POINTS."""
        tflops, vram = self.has
        compute, memory = self.tflops and _PERCENT, self.vram and _PERCENT
        if self.tflops < tflops:
            compute = self.tflops * _PERCENT // tflops
        if self.vram < vram:
            memory = self.vram * _PERCENT // vram
        return _LOADS[0] * compute + _LOADS[1] * memory

    @property
    def is_idle(self) -> bool:
        """Does no pod use anything of it?"""
        return not (self.tflops or self.vram or self.pods)

    @property
    def broken(self) -> int:
        """What is left of a card that pods use, in millionths: of what it has least of."""
        if self.is_idle:
            return 0
        used = zip(self.has, (self.tflops, self.vram), strict=True)
        parts = ((has - taken) * WHOLE_GPU // has for has, taken in used if has > 0)
        return max(min(parts, default=0), 0)

    @property
    def free_soon(self) -> GpuAmount:
        """What is left of it once terminating pods have ended."""
        return self.free.plus(self.leaving)


class Cards:
    """The columns: for each fact of a card, `(places of a node, nodes)`."""

    def __init__(self, placement: DevicePlacement = "NodeCompactGPULowLoad") -> None:
        self._compact_nodes = placement != "LowLoadFirst"
        self._compact_cards = placement == "CompactFirst"
        self._judges_rests = placement == "leastFragmentation"
        self._codes: dict[str, int] = {}
        """A number for each model, vendor and pool."""
        self._names: dict[int, tuple[str, ...]] = {}
        self._placed: dict[int, tuple[Card, ...]] = {}
        self._masks: dict[Kind, Mask] = {}
        self._sizes: dict[Kind, list[GpuAmount]] = {}
        self.nodes = 0
        """How many slots of nodes there are."""
        self._adopt(1, 8)

    def _adopt(self, places: int, nodes: int) -> None:
        """Make the columns, empty, for so many nodes with so many places."""
        self._facts = np.zeros((_ROWS, places, nodes), dtype=np.int64)
        self._facts[_FREE] = _ABSENT
        self._cells: memoryview[int] = self._facts.data.cast("B").cast("q")
        self._wide, self._step = nodes, places * nodes
        """How far the next place of a card is from a cell, and the next row."""
        self._loads = np.zeros((3, nodes), dtype=np.int64)
        self._loads[_COUNT] = 1
        self._loads[_MEAN] = self._mean(0, 1)
        self._by_node = tuple(row.data for row in self._loads)

    def reserve(self, nodes: int, places: int = 1) -> None:
        """Make room for so many nodes, with so many places."""
        facts, loads = self._facts, self._loads
        if nodes > self.nodes:
            self.nodes = nodes
            self._forget_kinds()
        _, deep, wide = facts.shape
        if places <= deep and nodes <= wide:
            return
        self._adopt(max(places, deep), wide if nodes <= wide else max(2 * wide, nodes))
        self._facts[:, :deep, :wide] = facts
        self._loads[:, :wide] = loads

    def _forget_kinds(self) -> None:
        self._masks.clear()
        self._sizes.clear()

    def names(self, slot: int) -> tuple[str, ...]:
        """The cards of a node, by place."""
        return self._names.get(slot, ())

    def lay_out(self, slot: int, cards: Iterable[tuple[Device, Card]]) -> None:
        """Give these cards the places of a node; those that were there have none any more."""
        placed = tuple(cards)
        self.reserve(slot + 1, len(placed))
        self._forget_kinds()
        for card in self._placed.pop(slot, ()):
            if card.place is not None and card.place[1] == slot:
                card.place = None
        self._names[slot] = tuple(device.name for device, _ in placed)
        self._placed[slot] = tuple(card for _, card in placed)
        facts, count = self._facts, len(placed)
        facts[:, count:, slot] = 0
        facts[_FREE, count:, slot] = _ABSENT
        if placed:
            facts[:, :count, slot] = np.array([self._row(*each) for each in placed]).T
        total = int(facts[_LOAD, :, slot].sum())
        self._loads[:, slot] = max(count, 1), total, self._mean(total, max(count, 1))
        for place, (_, card) in enumerate(placed):
            card.place = place, slot

    def _row(self, device: Device, card: Card) -> tuple[int, ...]:
        """All facts of a card, in the order of the rows."""
        words, codes = (_same(device.model), _same(device.vendor), device.pool), self._codes
        kind = (codes.setdefault(word, len(codes)) for word in words)
        load, index = card.load, min(device.index, _LARGEST_INDEX)
        facts = *card.free, *card.has, load, self._points(load), card.is_idle, card.broken, 1
        return *facts, *kind, index, card.number, *card.leaving

    def _points(self, load: int) -> int:
        """The points of a card by its load."""
        return load if self._compact_cards else MOST_POINTS - load

    def _mean(self, total: int, count: int) -> int:
        """The points of a node by the loads of its cards, rounded down."""
        return total // count if self._compact_nodes else MOST_POINTS + -total // count

    def write(self, card: Card) -> None:
        """Write what pods have changed about a card."""
        if card.place is None:
            return
        place, slot = card.place
        cells, step, load = self._cells, self._step, card.load
        cell = place * self._wide + slot
        cells[cell] = card.has[0] - card.tflops
        cells[cell + step] = card.has[1] - card.vram
        cell += _LOAD * step
        counts, sums, means = self._by_node
        total = sums[slot] = sums[slot] + load - cells[cell]
        means[slot] = self._mean(total, counts[slot])
        cells[cell] = load
        cells[cell + step] = self._points(load)
        cells[cell + 2 * step] = card.is_idle
        if self._judges_rests:
            cells[cell + 3 * step] = card.broken

    def write_leaving(self, card: Card) -> None:
        """Write what terminating pods hold of a card."""
        if card.place is not None:
            self._facts[_LEAVING, *card.place] = card.leaving

    def filters(self, ask: GpuAsk) -> Iterator[tuple[str, Mask]]:
        """What a pod asks of the kind of its cards, by name, and the places that have it."""
        facts = self._at(_EVERY, None)
        if ask.pool:
            yield f"pool {ask.pool}", facts[_POOL] == self._codes.get(ask.pool, -1)
        if ask.indices:
            yield "index", np.isin(facts[_INDEX], ask.indices)
        if ask.model:
            yield f"model {ask.model}", facts[_MODEL] == self._codes.get(_same(ask.model), -1)
        if ask.vendor:
            yield f"vendor {ask.vendor}", facts[_VENDOR] == self._codes.get(_same(ask.vendor), -1)

    def of_kind(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Which places of these nodes have a card of the kind that a pod asks for."""
        key = _kind(ask)
        found = self._masks.get(key)
        if found is None:
            if len(self._masks) >= _MOST_MASKS:
                self._forget_kinds()
            found = self.there
            for _, passes in self.filters(ask):
                found &= passes
            self._masks[key] = found
        return _of_nodes(found, slots)

    def fit(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Which cards of these nodes hold such a pod now."""
        if ask.whole:
            fits = self.idle(slots)
        else:
            facts = self._at(_PARTS if ask.of_parts else _FREE, slots)
            needs: tuple[Column | int, Column | int] = ask.request
            if ask.of_parts:
                needs = _needs(ask, 0, facts), _needs(ask, 1, facts)
            fits = facts[0] >= needs[0]
            fits &= facts[1] >= needs[1]
        if ask.of_kind:
            fits &= self.of_kind(ask, slots)
        return fits

    def load(self, slots: Slots = None) -> Column:
        """The load of each card of these nodes."""
        return self._at(_LOAD, slots)

    def points(self, slots: Slots = None) -> Column:
        """The points of each card of these nodes, the more the better."""
        return self._at(_POINTS, slots)

    def sizes(self, ask: GpuAsk) -> list[GpuAmount]:
        """The capacities of the cards of the kind that a pod asks for, each once."""
        key = _kind(ask)
        found = self._sizes.get(key)
        if found is None:
            has = self._at(_HAS, None)[:, self.of_kind(ask)]
            distinct = np.unique(has, axis=1).T.tolist()
            found = self._sizes[key] = [GpuAmount(*each) for each in distinct]
        return found

    def serve(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Which cards of these nodes would hold such a pod if they were idle."""
        serves = self.of_kind(ask, slots)
        if ask.whole:
            return serves
        facts = self._at(_PARTS, slots)
        for i, has in enumerate(facts[_HAS]):
            serves = serves & (has >= _needs(ask, i, facts))
        return serves

    def node_points(self, ask: GpuAsk, slots: Slots = None) -> Column:
        """The points of these nodes, by the mean load of their cards of the kind asked for."""
        if not ask.of_kind:
            means: Column = self._loads[_MEAN]
            return means[: self.nodes] if slots is None else means.take(slots)
        matching = self.of_kind(ask, slots)
        count = np.maximum(matching.sum(axis=0), 1)
        total = (self.load(slots) * matching).sum(axis=0)
        mean: Column = total // count if self._compact_nodes else MOST_POINTS + -total // count
        return mean

    @property
    def there(self) -> Mask:
        """Which places have a card that takes pods."""
        there: Mask = self._at(_THERE, None) != 0
        return there

    def idle(self, slots: Slots = None) -> Mask:
        """Which cards of these nodes no pod uses at all."""
        idle: Mask = self._at(_IDLE, slots) != 0
        return idle

    def free_soon(self) -> Column:
        """What each card has free once terminating pods have ended: compute, then memory."""
        soon: Column = self._at(_FREE, None) + self._at(_LEAVING, None)
        return soon

    def needs(self, ask: GpuAsk) -> Column:
        """What such a pod takes of each card, compute and memory."""
        facts = self._at(_PARTS, None)
        if ask.whole:
            return facts[_HAS]
        needs = (np.broadcast_to(_needs(ask, i, facts), facts.shape[1:]) for i in (0, 1))
        return np.array(list(needs))

    def by_place(self, by_number: Column) -> Column:
        """Figures by the numbers of cards, by place; that of number 0 where there is no card."""
        found: Column = by_number.take(self._at(_NUMBER, None), -1)
        return found

    def broken(self, slots: Slots = None) -> Column:
        """What is left of each card of these nodes that pods use: see `Card.broken`.

        Kept up to date only where placements are judged by what they leave.
        """
        return self._at(_BROKEN, slots)

    def largest(self) -> Column:
        """The compute and the memory of the largest card of each node; 0 without cards."""
        largest: Column = self._at(_HAS, None).max(axis=1)
        return largest

    def _at(self, rows: slice | int, slots: Slots) -> Column:
        """Some rows of the columns, of these nodes."""
        if isinstance(slots, int):
            return self._facts[rows, :, slots]
        found = self._facts[rows]  # `take` would copy all of a narrower view
        return found[..., : self.nodes] if slots is None else found.take(slots, -1)


def _of_nodes(columns: NDArray[Any], slots: Slots) -> NDArray[Any]:
    """What columns over all nodes say of these."""
    if slots is None:
        return columns
    return columns[..., slots] if isinstance(slots, int) else columns.take(slots, -1)


def _kind(ask: GpuAsk) -> Kind:
    return ask.model, ask.vendor, ask.pool, ask.indices


def _needs(ask: GpuAsk, i: int, facts: Column) -> Column | int:
    """What such a pod takes of each card: an amount, and perhaps a part of what the card has."""
    amount = min(ask.request[i], _TOO_MUCH)
    if not ask.of_parts or not ask.request_part[i]:
        return amount
    part = min(ask.request_part[i], WHOLE_GPU)
    rounded_up: Column = amount - (-facts[_HAS][i] * part // WHOLE_GPU)
    return rounded_up


def _same(name: str) -> str:
    """The names of two models or vendors are equal but for case."""
    return name.casefold()
