"""What a pod's placement does to the expected unusable rest of nodes: `leastFragmentation`.

The node is best whose unusable rest (`usable`) grows least, or shrinks most, as seen by the mix of
pods that are known; so is the card. Nodes that are open to the same typical requests, of which each
takes the same part of a card there, are of one kind, with one table. A pod that asks for no card is
judged as well: it takes cpu that cards need. Where single cards are not shared, the engine knows no
devices, and a node has as many idle cards as it has of their resource.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.gpus.devices import enough
from aliquot.engine.model.gpu import CARD_RESOURCES, WHOLE_GPU, GpuAmount
from aliquot.engine.model.pod import Shape
from aliquot.engine.placement.fragmentation.mix import Mix, Weights, asks_for_cards
from aliquot.engine.placement.fragmentation.rests import (
    MEMORY_SHIFT,
    MOST_CARDS,
    NodeRests,
    Version,
)
from aliquot.engine.placement.fragmentation.usable import Column, Request, UsableCards
from aliquot.engine.placement.node_books import NodeBooks
from aliquot.engine.placement.preferences import OPEN

COST_BITS = 14
"""Bits of a node's points: 32 cards in steps of 1/512 of a card. Finer steps pack no better."""
_STEP = 9
_MOST_ASKED = 2**13
"""Requests by shape and size of cards that are kept: 64 typical ones on some dozens of sizes."""
_MOST_KINDS = 16
"""Kinds of nodes with a table each, of 2.6 MB at most; nodes of rarer kinds are all alike."""
_NO_KIND = -1
_BARE = -1
"""The size of cards that are no devices of ours."""
_MOST_COST = (1 << (COST_BITS - 1)) - 1


class Fragmentation:
    """What placements cost, over the nodes; follows the mix and the nodes."""

    def __init__(self, books: NodeBooks, mix: Mix) -> None:
        self._resources, self._nodes, self._devices, _, self._preferences = books
        self._mix = mix
        self._rests = NodeRests(books)
        self._moment: Version = ()
        self._known_at: Version = ()
        self._served: dict[Shape, NDArray[np.bool_]] = {}
        """The nodes that could ever serve each typical request."""
        self._asked: dict[tuple[Shape, GpuAmount], Request] = {}
        """What shapes ask for of cards of a size."""
        self._kinds: list[UsableCards] = []
        self._sizes: list[GpuAmount] = []
        """The cards of the first node of each kind."""
        self._kind_of = np.zeros(0, dtype=np.int64)
        """The kind of each node; `_NO_KIND` without cards."""
        self._unusable = np.zeros(0, dtype=np.int64)
        """What of each node's rest is unusable."""

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
                judge = partial(self._costs, number, shape)
                costs[among] = self._rests.once(slots.take(among), judge)
        points: Column = _MOST_COST - np.minimum(np.maximum(costs, -_MOST_COST), _MOST_COST)
        return points

    def _costs(self, number: int, shape: Shape, slots: Column) -> Column:
        """By how many 512ths of a card the unusable rest of these nodes grows."""
        kind = self._kinds[number]
        pod = self._request(number, shape)
        rest = self._rests.all.take(slots)
        grown = kind.unusable_after(rest, pod, _supply(shape)) - self._unusable.take(slots)
        costs: Column = (grown << _STEP) // (kind.weight * WHOLE_GPU)
        return costs

    def card_points(self, shape: Shape, node: str) -> Column | None:
        """The points of a node's cards for a pod that asks for parts, the more the better.

        None if any idle card will do.
        """
        ask = shape.gpu
        if ask is None or ask.whole or ask.sliced or node not in self._nodes.known:
            return None
        self._refresh()
        slot = self._nodes.slots[node]
        number = int(self._kind_of[slot])
        if number == _NO_KIND:
            return None
        pod = self._request(number, shape)
        assert pod is not None
        idle = self._devices.cards.idle(slot)
        rest = self._rests.all.take(np.array([slot]))
        return self._kinds[number].card_points(rest, pod, idle)

    def _request(self, number: int, shape: Shape) -> Request | None:
        """What such a pod asks for of the cards of a kind of nodes."""
        return self._of_size(shape, self._sizes[number]) if asks_for_cards(shape) else None

    def _of_size(self, shape: Shape, size: GpuAmount) -> Request:
        """What such a pod asks for of cards of this size."""
        found = self._asked.get((shape, size))
        if found is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            found = self._asked[shape, size] = _request(shape, size)
        return found

    def _refresh(self) -> None:
        """Bring kinds and tables up to date with the mix and the nodes."""
        typical, here = self._mix.typical, self._rests.version
        changed = self._rests.follow()
        moment = self._mix.version, *here
        if moment != self._moment:
            self._moment = moment
            self._make_kinds(typical, here)
            changed = np.arange(len(self._nodes.slots))
        if len(changed):
            self._judge(changed)

    def _judge(self, slots: Column) -> None:
        """Work out what of these nodes is unusable."""
        rests, kinds = self._rests, self._kind_of.take(slots)
        for number, kind in enumerate(self._kinds):
            among = slots[kinds == number]
            if len(among):
                rests.find_levels(among, kind)
                self._unusable[among] = rests.once(among, partial(_unusable, kind, rests))

    def _make_kinds(self, typical: Weights, here: Version) -> None:
        """Tell the kinds of nodes apart, and make a table for each."""
        if here != self._known_at:
            self._served.clear()
            self._known_at = here
        shapes = [shape for shape, _ in typical]
        self._served = {shape: self._served_by(shape) for shape in shapes}
        weight = sum(weight for _, weight in typical)
        has = self._devices.cards.largest().copy()
        has[0, self._rests.bare] = _BARE
        count = len(self._nodes.slots)
        served = np.zeros((64, count), dtype=bool)
        for row, shape in enumerate(shapes):
            served[row] = self._served[shape]
        self._kinds, self._sizes = [], []
        self._kind_of = np.full(count, _NO_KIND, dtype=np.int64)
        self._unusable = np.zeros(count, dtype=np.int64)
        for slots in _groups(self._sizes_apart(has, shapes), served) if weight else []:
            first = int(slots[0])
            size = GpuAmount(int(has[0, first]), int(has[1, first]))
            requests = [
                self._of_size(shape, size)._replace(weight=each)
                for row, (shape, each) in enumerate(typical)
                if served[row, first]
            ]
            self._kind_of[slots] = len(self._kinds)
            self._kinds.append(UsableCards(requests, weight))
            self._sizes.append(size)

    def _sizes_apart(self, has: Column, shapes: list[Shape]) -> Column:
        """By node, a number for what the cards mean to these requests; 0 without cards.

        Cards of two sizes are alike if each request takes the same part of either: no pod may ask
        for what they differ in.
        """
        sizes, of_node = np.unique(has, axis=1, return_inverse=True)
        numbers: dict[tuple[int, ...], int] = {}
        found = np.zeros(sizes.shape[1], dtype=np.int64)
        for column, (compute, memory) in enumerate(sizes.T.tolist()):
            if compute or memory:
                size = GpuAmount(compute, memory)
                parts = (self._of_size(shape, size).part for shape in shapes)
                apart = compute == _BARE, *parts
                found[column] = numbers.setdefault(apart, len(numbers) + 1)
        return found.take(of_node.ravel())

    def _served_by(self, shape: Shape) -> NDArray[np.bool_]:
        """The nodes that could serve such a pod if they were empty and had cards enough."""
        found = self._served.get(shape)
        if found is None:
            found = np.equal(self._preferences.of(shape.constraints).codes, OPEN)
            if shape.gpu is not None:
                found = found & enough(self._devices.cards.serve(shape.gpu), 1)
            for row in self._rests.card_rows() if shape.gpu is None else ():
                if dict(shape.requests).get(self._resources.names[row]):
                    found = found & (self._nodes.allocatable.data[row, : len(found)] > 0)
        return found


def _unusable(kind: UsableCards, rests: NodeRests, slots: Column) -> Column:
    """What of these nodes, of a kind, is unusable."""
    return kind.unusable(rests.all.take(slots))


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
    return min(asks.get("cpu", 0), 2**40), -(-asks.get("memory", 0) >> MEMORY_SHIFT)


def _request(shape: Shape, size: GpuAmount) -> Request:
    """What a pod asks for, on cards of this size; its weight is the mix's to say."""
    ask = shape.gpu
    if ask is None:
        cards = sum(number for name, number in shape.requests if name in CARD_RESOURCES)
        return Request(0, _supply(shape), WHOLE_GPU, min(cards, MOST_CARDS), whole=True)
    count = min(ask.count, MOST_CARDS)
    if ask.whole:
        return Request(0, _supply(shape), WHOLE_GPU, count, whole=True)
    asks = zip(ask.request, ask.request_part, size, strict=True)
    parts = (
        extra - (-min(amount, has) * WHOLE_GPU // has) for amount, extra, has in asks if has > 0
    )
    return Request(0, _supply(shape), min(max(parts, default=0), WHOLE_GPU), count, False)
