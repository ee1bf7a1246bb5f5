"""What a pod's placement does to the expected unusable rest of nodes: `leastFragmentation`.

The node is best whose unusable rest (`usable`) grows least, or shrinks most, as seen by the mix of
pods that are known; so is the card. Nodes that are open to the same typical requests, of which each
takes the same part of a card there, are of one kind, with one table. A pod that asks for no card is
judged as well: it takes cpu that cards need. Where single cards are not shared, the engine knows no
devices, and a node has as many idle cards as it has of their resource.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Resources
from aliquot.engine.gpus.devices import Devices, enough
from aliquot.engine.model.gpu import CARD_RESOURCES, WHOLE_GPU, GpuAmount
from aliquot.engine.model.pod import Shape
from aliquot.engine.placement.fragmentation.mix import Mix, asks_for_cards
from aliquot.engine.placement.fragmentation.usable import Column, Request, Rest, UsableCards
from aliquot.engine.placement.free_capacity import FreeCapacity
from aliquot.engine.placement.preferences import OPEN, NodePreferences

COST_BITS = 14
"""Bits of a node's points: 32 cards in steps of 1/512 of a card. Finer steps pack no better."""
_STEP = 9
_SUPPLY = ("cpu", "memory")
_MOST_CARDS = 2**10
"""More than a node has: products stay in int64."""
_MEMORY_SHIFT = 20
"""Memory counts in MiB, rounded down where it is free, up where it is asked for."""
_MOST_KINDS = 16
"""Kinds of nodes with a table each, of 2.6 MB at most; nodes of rarer kinds are all alike."""
_NO_KIND = -1
_BARE = -1
"""The size of cards that are no devices of ours."""
_MOST_COST = (1 << (COST_BITS - 1)) - 1

Version = tuple[int, ...]


class Fragmentation:
    """What placements cost, over the nodes; follows the mix and the nodes."""

    def __init__(
        self,
        resources: Resources,
        nodes: Nodes,
        devices: Devices,
        capacity: FreeCapacity,
        preferences: NodePreferences,
        mix: Mix,
    ) -> None:
        self._resources = resources
        self._nodes = nodes
        self._devices = devices
        self._capacity = capacity
        self._preferences = preferences
        self._mix = mix
        self._moment: Version = ()
        self._known_at: Version = ()
        self._served: dict[Shape, NDArray[np.bool_]] = {}
        """The nodes that could ever serve each typical request."""
        self._kinds: list[UsableCards] = []
        self._sizes: list[GpuAmount] = []
        """The cards of the first node of each kind."""
        self._requests: dict[tuple[int, Shape], Request] = {}
        self._kind_of = np.zeros(0, dtype=np.int64)
        """The kind of each node; `_NO_KIND` without cards."""
        self._bare = np.zeros(0, dtype=bool)
        """The nodes whose cards are no devices."""
        self._read = (-1, 0)
        """How far the list of nodes with another free capacity was read."""

    def version(self) -> int:
        """Grows whenever all nodes must be judged anew."""
        self._mix.typical  # noqa: B018
        return self._mix.version + self._devices.version

    def points(self, shape: Shape, slots: Column) -> Column:
        """The points of these nodes, the more the less a pod costs there; where it fits."""
        self._refresh()
        costs = np.zeros(len(slots), dtype=np.int64)
        kinds = self._kind_of.take(slots)
        for number in range(len(self._kinds)):
            among = np.flatnonzero(kinds == number)
            if len(among):
                costs[among] = self._costs(number, shape, slots.take(among))
        points: Column = _MOST_COST - np.minimum(np.maximum(costs, -_MOST_COST), _MOST_COST)
        return points

    def _costs(self, number: int, shape: Shape, slots: Column) -> Column:
        """By how many 512ths of a card the unusable rest of these nodes grows."""
        kind = self._kinds[number]
        pod = self._request(number, shape)
        grown = kind.unusable_after(self._rest.take(slots), pod, _supply(shape))
        grown -= self._unusable.take(slots)
        costs: Column = (grown << _STEP) // (kind.weight * WHOLE_GPU)
        return costs

    def card_points(self, shape: Shape, node: str) -> Column | None:
        """The points of a node's cards for a pod that asks for parts, the more the better.

        None if any idle card will do.
        """
        ask = shape.gpu
        if ask is None or ask.whole or ask.sliced or node not in self._nodes.known:
            return None
        self._capacity.refresh()
        self._refresh()
        slot = self._nodes.slots[node]
        number = int(self._kind_of[slot])
        if number == _NO_KIND:
            return None
        pod = self._request(number, shape)
        assert pod is not None
        idle = self._devices.cards.idle(slot)
        return self._kinds[number].card_points(self._rest.take(np.array([slot])), pod, idle)

    def _request(self, number: int, shape: Shape) -> Request | None:
        """What such a pod asks for of the cards of a kind of nodes."""
        if not asks_for_cards(shape):
            return None
        key = number, shape
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = _request(shape, 0, self._sizes[number])
        return found

    def _follow(self) -> None:
        """Work out anew what the nodes have left that have changed since the last call."""
        self._capacity.refresh()
        now = self._capacity.epoch, self._capacity.recomputed
        if now != self._read:
            same = now[0] == self._read[0]
            self._note_rest(self._capacity.recomputed_since(self._read[1]) if same else None)
            self._read = now

    def _note_rest(self, slots: Column | None) -> None:
        """Work out what these nodes have left, or all."""
        cards, count = self._devices.cards, len(self._nodes.slots)
        every = slots is None
        slots = np.arange(count) if slots is None else slots
        supply = np.zeros((2, len(slots)), dtype=np.int64)
        for i, name in enumerate(_SUPPLY):
            if name in self._resources:
                supply[i] = self._capacity.free.data[self._resources.row(name)].take(slots)
        supply[1] >>= _MEMORY_SHIFT
        idle, parts = cards.idle(slots), cards.free_parts(slots)
        broken = np.where(idle, 0, parts)
        number_idle = np.where(self._bare.take(slots), self._free_cards(slots), idle.sum(axis=0))
        rest = Rest(supply, broken, np.zeros_like(broken), number_idle)
        unusable, kinds = np.zeros(len(slots), dtype=np.int64), self._kind_of.take(slots)
        for number, kind in enumerate(self._kinds):
            among = np.flatnonzero(kinds == number)
            if len(among):
                rest.levels[:, among] = kind.levels(broken[:, among])
                unusable[among] = kind.unusable(rest.take(among))
        if every:
            self._rest, self._unusable = rest, unusable
            return
        for column, new in zip(self._rest.columns, rest.columns, strict=True):
            column[..., slots] = new
        self._unusable[slots] = unusable

    def _free_cards(self, slots: Column) -> Column:
        """How many whole cards these nodes have free, as their resources say."""
        number = np.zeros(len(slots), dtype=np.int64)
        for row in self._card_rows():
            number += self._capacity.free.data[row].take(slots)
        return np.minimum(np.maximum(number, 0), _MOST_CARDS)

    def _card_rows(self) -> list[int]:
        return [self._resources.row(name) for name in CARD_RESOURCES if name in self._resources]

    def _refresh(self) -> None:
        """Bring kinds and tables up to date with the mix and the nodes."""
        typical = self._mix.typical
        here = self._nodes.version, self._devices.version, len(self._nodes.slots)
        moment = self._mix.version, *here
        if moment == self._moment:
            self._follow()
            return
        if here != self._known_at:
            self._served.clear()
            self._known_at = here
        self._moment = moment
        shapes = [shape for shape, _ in typical]
        self._served = {shape: self._served_by(shape) for shape in shapes}
        weight = sum(weight for _, weight in typical)
        has = self._devices.cards.largest().copy()
        cards = np.zeros(len(self._nodes.slots), dtype=bool)
        for row in self._card_rows():
            cards |= self._nodes.allocatable.data[row, : len(cards)] > 0
        self._bare = cards & ~has.any(axis=0)
        has[0, self._bare] = _BARE
        served = np.zeros((64, len(self._nodes.slots)), dtype=bool)
        for row, shape in enumerate(shapes):
            served[row] = self._served[shape]
        self._kinds, self._sizes = [], []
        self._requests.clear()
        self._kind_of = np.full(len(self._nodes.slots), _NO_KIND, dtype=np.int64)
        for slots in _groups(_sizes_apart(has, shapes), served) if weight else []:
            first = int(slots[0])
            size = GpuAmount(int(has[0, first]), int(has[1, first]))
            requests = [
                _request(shape, each, size)
                for row, (shape, each) in enumerate(typical)
                if served[row, first]
            ]
            self._kind_of[slots] = len(self._kinds)
            self._kinds.append(UsableCards(requests, weight))
            self._sizes.append(size)
        self._capacity.refresh()
        self._read = self._capacity.epoch, self._capacity.recomputed
        self._note_rest(None)

    def _served_by(self, shape: Shape) -> NDArray[np.bool_]:
        """The nodes that could serve such a pod if they were empty and had cards enough."""
        found = self._served.get(shape)
        if found is None:
            found = np.equal(self._preferences.of(shape.constraints).codes, OPEN)
            if shape.gpu is not None:
                found = found & enough(self._devices.cards.serve(shape.gpu), 1)
            for row in self._card_rows() if shape.gpu is None else ():
                if dict(shape.requests).get(self._resources.names[row]):
                    found = found & (self._nodes.allocatable.data[row, : len(found)] > 0)
        return found


def _sizes_apart(has: Column, shapes: list[Shape]) -> Column:
    """By node, a number for what the cards mean to these requests; 0 without cards.

    Cards of two sizes are alike if each request takes the same part of either: no pod may ask for
    what they differ in.
    """
    sizes, of_node = np.unique(has, axis=1, return_inverse=True)
    numbers: dict[tuple[int, ...], int] = {}
    found = np.zeros(sizes.shape[1], dtype=np.int64)
    for column, (compute, memory) in enumerate(sizes.T.tolist()):
        if compute or memory:
            size = GpuAmount(compute, memory)
            parts = compute == _BARE, *(_request(shape, 0, size).part for shape in shapes)
            found[column] = numbers.setdefault(parts, len(numbers) + 1)
    return found.take(of_node.ravel())


def _groups(sizes: Column, served: NDArray[np.bool_]) -> list[Column]:
    """The slots of the nodes of each kind, the most frequent kinds first; not those without cards.

    Nodes of kinds beyond `_MOST_KINDS` are left out.
    """
    bits = np.ascontiguousarray(np.packbits(served, axis=0).T).view(np.uint64).ravel()
    facts = np.stack([sizes, bits.view(np.int64)])
    with_cards = np.flatnonzero(sizes)
    _, kind, counts = np.unique(
        facts[:, with_cards], axis=1, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")[:_MOST_KINDS].tolist()
    return [with_cards[kind.ravel() == each] for each in order]


def _supply(shape: Shape) -> tuple[int, int]:
    """The cpu and memory that a pod asks for, in the units of supply."""
    asks = dict(shape.requests)
    return min(asks.get("cpu", 0), 2**40), -(-asks.get("memory", 0) >> _MEMORY_SHIFT)


def _request(shape: Shape, weight: int, size: GpuAmount) -> Request:
    """A typical request, on cards of this size."""
    ask = shape.gpu
    if ask is None:
        cards = sum(number for name, number in shape.requests if name in CARD_RESOURCES)
        return Request(weight, _supply(shape), WHOLE_GPU, min(cards, _MOST_CARDS), whole=True)
    count = min(ask.count, _MOST_CARDS)
    if ask.whole:
        return Request(weight, _supply(shape), WHOLE_GPU, count, whole=True)
    asks = zip(ask.request, ask.request_part, size, strict=True)
    parts = (
        extra - (-min(amount, has) * WHOLE_GPU // has) for amount, extra, has in asks if has > 0
    )
    return Request(weight, _supply(shape), min(max(parts, default=0), WHOLE_GPU), count, False)
