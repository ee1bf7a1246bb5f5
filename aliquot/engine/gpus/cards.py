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

MOST_POINTS = 1000
"""The highest load of a card: percentages, weighted by tenths (see `_LOADS`)."""
MOST = 2**42
"""Capacity and usage of a device saturate here: 4 TiB, or as many milli-TFLOPs, is more than any
device has, and its product with WHOLE_GPU fits an int64."""

_TOO_MUCH = 2 * MOST
"""No card has this."""
_FREE, _HAS, _LOAD, _IDLE, _THERE = slice(0, 2), slice(2, 4), 4, 5, 6
_MODEL, _VENDOR, _POOL, _INDEX, _NUMBER = range(7, 12)
_LEAVING = slice(12, 14)
_ROWS = 14
_AMOUNT_ROWS, _PART_ROWS = 2, 4
"""How many of the first rows a request of amounts looks at, and one of parts of cards."""
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

    __slots__ = ("capacity", "leaving", "number", "place", "pods", "pods_leaving", "tflops", "vram")

    def __init__(self, number: int) -> None:
        self.number = number
        """Which card it is, from 1 on; used again once it is forgotten."""
        self.capacity = NO_GPU_AMOUNT
        """None of a card that only pods know of."""
        self.tflops = self.vram = self.pods = 0
        self.leaving = NO_GPU_AMOUNT
        """What of it terminating pods hold."""
        self.pods_leaving = 0
        self.place: tuple[int, int] | None = None

    def use(self, amount: GpuAmount, sign: int) -> None:
        """Count an amount as used (sign +1), or no longer (-1)."""
        self.tflops += sign * min(amount.tflops, MOST)
        self.vram += sign * min(amount.vram, MOST)

    @property
    def free(self) -> GpuAmount:
        """What is left of it."""
        has = self.capacity
        return GpuAmount(min(has.tflops, MOST) - self.tflops, min(has.vram, MOST) - self.vram)

    @property
    def load(self) -> int:
        """How much of it is used, of MOST_POINTS."""
        tflops, vram = self.capacity
        compute = self.tflops * _PERCENT // max(min(tflops, MOST), 1)
        memory = self.vram * _PERCENT // max(min(vram, MOST), 1)
        return _LOADS[0] * min(compute, _PERCENT) + _LOADS[1] * min(memory, _PERCENT)

    @property
    def is_idle(self) -> bool:
        """Does no pod use anything of it?"""
        return not (self.tflops or self.vram or self.pods)

    @property
    def free_soon(self) -> GpuAmount:
        """What is left of it once terminating pods have ended."""
        return self.free.plus(self.leaving)


class Cards:
    """The columns: for each fact of a card, `(places of a node, nodes)`."""

    def __init__(self) -> None:
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
        self._loads = np.zeros((2, nodes), dtype=np.int64)
        """How many cards each node has, at least 1, and the sum of their loads."""
        self._loads[0] = 1
        self._sums: memoryview[int] = self._loads[1].data

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
        facts = self._facts
        facts[:, :, slot] = 0
        facts[_FREE, :, slot] = _ABSENT
        self._loads[:, slot] = max(len(placed), 1), 0
        self._names[slot] = tuple(device.name for device, _ in placed)
        self._placed[slot] = tuple(card for _, card in placed)
        for place, (device, card) in enumerate(placed):
            card.place = place, slot
            words = _same(device.model), _same(device.vendor), device.pool
            codes = (self._codes.setdefault(word, len(self._codes)) for word in words)
            facts[_HAS, place, slot] = np.minimum(device.capacity, MOST)
            index = min(device.index, _LARGEST_INDEX)
            facts[_THERE : _NUMBER + 1, place, slot] = (1, *codes, index, card.number)
            self.write(card)
            self.write_leaving(card)

    def write(self, card: Card) -> None:
        """Write what pods have changed about a card."""
        if card.place is None:
            return
        place, slot = card.place
        _, deep, wide = self._facts.shape
        cells, cell, step = self._cells, place * wide + slot, deep * wide
        cells[cell], cells[cell + step] = card.free
        cell += _LOAD * step
        load = card.load
        self._sums[slot] += load - cells[cell]
        cells[cell] = load
        cells[cell + step] = card.is_idle

    def write_leaving(self, card: Card) -> None:
        """Write what terminating pods hold of a card."""
        if card.place is not None:
            self._facts[_LEAVING, *card.place] = card.leaving

    def filters(self, ask: GpuAsk) -> Iterator[tuple[str, Mask]]:
        """What a pod asks of the kind of its cards, by name, and the places that have it."""
        facts = self._at(self._facts, None)
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
        return self._at(found, slots)

    def fit(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Which cards of these nodes hold such a pod now."""
        if ask.whole:
            fits: Mask = self._at(self._facts[_IDLE], slots) != 0
        else:
            facts = self._at(self._facts[: _PART_ROWS if ask.of_parts else _AMOUNT_ROWS], slots)
            fits = facts[0] >= _needs(ask, 0, facts)
            fits &= facts[1] >= _needs(ask, 1, facts)
        if ask.of_kind:
            fits &= self.of_kind(ask, slots)
        return fits

    def load(self, slots: Slots = None) -> Column:
        """The load of each card of these nodes."""
        return self._at(self._facts[_LOAD], slots)

    def sizes(self, ask: GpuAsk) -> list[GpuAmount]:
        """The capacities of the cards of the kind that a pod asks for, each once."""
        key = _kind(ask)
        found = self._sizes.get(key)
        if found is None:
            has = self._at(self._facts[_HAS], None)[:, self.of_kind(ask)]
            distinct = np.unique(has, axis=1).T.tolist()
            found = self._sizes[key] = [GpuAmount(*each) for each in distinct]
        return found

    def serve(self, ask: GpuAsk, slots: Slots = None) -> Mask:
        """Which cards of these nodes would hold such a pod if they were idle."""
        serves = self.of_kind(ask, slots)
        if ask.whole:
            return serves
        facts = self._at(self._facts[:_PART_ROWS], slots)
        for i, has in enumerate(facts[_HAS]):
            serves = serves & (has >= _needs(ask, i, facts))
        return serves

    def mean_load(self, ask: GpuAsk, slots: Slots, rounded_up: bool) -> Column:
        """The mean load of each node's cards of the kind that a pod asks for."""
        if ask.of_kind:
            matching = self.of_kind(ask, slots)
            count, total = matching.sum(axis=0), (self.load(slots) * matching).sum(axis=0)
            count = np.maximum(count, 1)
        else:
            count, total = self._at(self._loads, slots)
        mean: Column = -(-total // count) if rounded_up else total // count
        return mean

    @property
    def there(self) -> Mask:
        """Which places have a card that takes pods."""
        there: Mask = self._at(self._facts[_THERE], None) != 0
        return there

    def idle(self, slots: Slots = None) -> Mask:
        """Which cards of these nodes no pod uses at all."""
        idle: Mask = self._at(self._facts[_IDLE], slots) != 0
        return idle

    def free_soon(self) -> Column:
        """What each card has free once terminating pods have ended: compute, then memory."""
        soon: Column = self._at(self._facts[_FREE], None) + self._at(self._facts[_LEAVING], None)
        return soon

    def needs(self, ask: GpuAsk) -> Column:
        """What such a pod takes of each card, compute and memory."""
        facts = self._at(self._facts[:_PART_ROWS], None)
        if ask.whole:
            return facts[_HAS]
        needs = (np.broadcast_to(_needs(ask, i, facts), facts.shape[1:]) for i in (0, 1))
        return np.array(list(needs))

    def by_place(self, by_number: Column) -> Column:
        """Figures by the numbers of cards, by place; that of number 0 where there is no card."""
        found: Column = by_number.take(self._at(self._facts[_NUMBER], None), -1)
        return found

    def free_parts(self, slots: Slots = None, less: GpuAsk | None = None) -> Column:
        """What each card of these nodes has free, in millionths of it: of what it has least of.

        Nothing where there is no card, or more is used than there is. `less`: once such a pod has
        taken its part of the card.
        """
        facts = self._at(self._facts[:_PART_ROWS], slots)
        free, has = facts[_FREE], facts[_HAS]
        if less is not None:
            free = np.stack([free[i] - _needs(less, i, facts) for i in (0, 1)])
        parts = np.where(has > 0, free * WHOLE_GPU // np.maximum(has, 1), WHOLE_GPU)
        least = np.where((has > 0).any(axis=0), parts.min(axis=0), 0)
        parts_left: Column = np.maximum(least, 0)
        return parts_left

    def largest(self) -> Column:
        """The compute and the memory of the largest card of each node; 0 without cards."""
        largest: Column = self._at(self._facts[_HAS], None).max(axis=1)
        return largest

    def _at(self, facts: NDArray[Any], slots: Slots) -> NDArray[Any]:
        """The columns of these nodes."""
        if slots is None:
            return facts[..., : self.nodes]
        return facts[..., slots] if isinstance(slots, int) else facts.take(slots, -1)


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
