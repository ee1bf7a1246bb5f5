"""The scores of nodes for a shape: filter and order in one column of int64.

Pods of one shape have the same scores, so each shape keeps a column of scores over the nodes and
updates only the nodes whose free capacity has changed since it was last read. From the highest bits
down, a score holds: the points of the pod's preferences; whether the node has no extended resource
that the pod would leave unused; how full (pack) or empty (spread) the node would be; and the node's
place in the order of names. Below zero, the pod does not fit.

Under `leastFragmentation`, what the placement costs (`fragmentation`) takes the place of the fill,
which parts those that cost the same.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.ledger import NOWHERE
from aliquot.engine.placement.ask import MOST_SCORED, Ask, is_special
from aliquot.engine.placement.fragmentation.fragmentation import COST_BITS, Fragmentation
from aliquot.engine.placement.free_capacity import WHOLE
from aliquot.engine.placement.node_books import NodeBooks
from aliquot.engine.placement.preferences import OPEN

_RANK_BITS = 20
"""Room for the order of a million nodes."""
_FILL_BITS = 24
"""Bits of the fill: 2 * 31 * 2**18 is less than 2**24. With 20 for the rank, 1 for the
extended resources and 17 for points, a score has 62 bits and stays positive in an int64: five
preferences of at most 100 points, each of a weight of at most 100, are 50,000."""
_TIE_BITS = _FILL_BITS - COST_BITS
"""Bits of the fill, where placements are told apart by what they cost."""
POINTS_SHIFT = _RANK_BITS + _FILL_BITS + 1
"""Where the points of preferences begin."""
_INFEASIBLE = -(2**62)
"""The base score of a node that constraints rule out: no fill makes up for it."""
_UNFIT = -1
"""The score of a node with too little free."""
_MOST_WARM = 1024
"""How many shapes keep their scores: at 5,000 nodes 80 KB each, 80 MB in all."""


class NodeScores:
    """A column of scores over the nodes for every shape that was asked for lately."""

    def __init__(
        self,
        books: NodeBooks,
        mode: Literal["pack", "spread"],
        fragmentation: Fragmentation | None = None,
    ) -> None:
        self._resources, self._nodes, self._devices, self._capacity, self._preferences = books
        self.mode = mode
        self._fragmentation = fragmentation
        self._warm: dict[Ask, None] = {}
        self._specials = ((-1, -1), np.empty(0, dtype=np.int64))
        """How many extended resources every node has, and for which nodes and resources."""

    def best(self, ask: Ask) -> int:
        """The node with the highest score; NOWHERE if such a pod fits on none."""
        scores = self.of(ask)
        if ask.best_score is None and len(scores):
            ask.best = int(scores.argmax())
            ask.best_score = scores.item(ask.best)
        return NOWHERE if ask.best_score is None or ask.best_score < 0 else ask.best

    def of(self, ask: Ask) -> NDArray[np.int64]:
        """The scores of a shape, up to date: below zero where the pod does not fit."""
        self._capacity.refresh()
        recomputed = self._capacity.recomputed
        version = self.version()
        mix = 0 if self._fragmentation is None else self._fragmentation.version()
        if ask.version != version or ask.mix != mix:
            self._keep_warm(ask)
            if ask.version != version:
                self._rebase(ask)
            ask.scores = self._score(ask, np.arange(len(self._nodes.slots)))
            ask.cells, ask.base_cells, ask.best_score = ask.scores.data, ask.base.data, None
            ask.version, ask.mix = version, mix
        elif ask.read < recomputed:
            self._follow(ask)
        ask.read = recomputed
        return ask.scores

    def _follow(self, ask: Ask) -> None:
        """Score the nodes anew whose free capacity has changed since the scores were last read."""
        one_by_one = ask.is_plain and self._fragmentation is None
        few = self._capacity.few_recomputed_since(ask.read) if one_by_one else None
        if few is not None:
            self._score_few(ask, few)
            return
        changed = self._capacity.recomputed_since(ask.read)
        if ask.is_narrow:
            changed = changed[ask.base.take(changed) > _INFEASIBLE]
        ask.scores[changed] = self._score(ask, changed)
        ask.best_score = None

    def _score_few(self, ask: Ask, slots: set[int]) -> None:
        """`_score` for a few nodes, one by one; keeps the best node in mind.

        Most often one of them is the best now, or the best one is not among them.
        """
        free, part = self._capacity.free.cells, self._capacity.part.cells
        base, cells, sign = ask.base_cells, ask.cells, 1 if self.mode == "spread" else -1
        needs, scored, top, best = ask.needs, ask.scored, _UNFIT, NOWHERE
        for slot in slots:
            score = _UNFIT
            for first, amount in needs:
                if free[first + slot] < amount:
                    break
            else:
                fill = 0
                for first in scored:
                    fill += part[first + slot]
                score = (sign * fill << _RANK_BITS) + base[slot]
                if score > top:
                    top, best = score, slot
            cells[slot] = score
        if ask.best_score is not None and top >= ask.best_score:
            ask.best, ask.best_score = best, top
        elif ask.best in slots:
            ask.best_score = None

    def _keep_warm(self, ask: Ask) -> None:
        """Bound the memory: beyond _MOST_WARM shapes, drop the scores computed longest ago."""
        self._warm.pop(ask, None)
        self._warm[ask] = None
        if len(self._warm) > _MOST_WARM:
            oldest = next(iter(self._warm))
            oldest.drop_scores()
            del self._warm[oldest]

    def _rebase(self, ask: Ask) -> None:
        """Compute the part of the scores that changes only with the nodes."""
        if ask.laid_out != len(self._resources):
            ask.lay_out(self._resources, self.mode)
        if ask.is_plain:
            ask.find_cells(self._capacity.free.width)
        fit = self._preferences.of(ask.shape.constraints)
        ask.prefers = fit.prefers
        count = len(fit.codes)
        has = ask.of(self._nodes.allocatable, count)
        used = self._nodes.allocatable.data[ask.special, :count] != 0
        lean = self._special()[:count] == used.sum(axis=0)
        takes = np.minimum(ask.request / np.maximum(has, 1), 1) * WHOLE
        ask.takes = ask.slope @ takes.astype(np.int64)
        fill = 0 if self._fragmentation is not None else MOST_SCORED * WHOLE - ask.takes
        base = (lean.astype(np.int64) << _FILL_BITS) + fill
        base = (base << _RANK_BITS) + (2**_RANK_BITS - 1 - self._nodes.rank)
        open_to = fit.codes == OPEN
        ask.base = np.where(open_to, base, _INFEASIBLE)
        ask.is_narrow = 2 * int(open_to.sum()) < count

    def _special(self) -> NDArray[np.int64]:
        """How many extended resources every node has."""
        moment = (self._nodes.version, len(self._resources))
        if self._specials[0] != moment:
            names = self._resources.names
            rows = [row for row, name in enumerate(names) if is_special(name)]
            counts = np.zeros(self._nodes.allocatable.width, dtype=np.int64)
            for row in rows:
                counts += self._nodes.allocatable.data[row] != 0
            self._specials = (moment, counts)
        return self._specials[1]

    def _score(self, ask: Ask, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of some nodes. Its cost is the number of numpy calls, so it makes few."""
        unfit = np.logical_or.reduce(ask.at(self._capacity.free, slots) < ask.need)
        if ask.gpu is not None:
            unfit |= ~self._devices.hold(ask.gpu, slots)
        if self._fragmentation is not None:
            return self._score_by_cost(ask, slots, np.flatnonzero(~unfit), self._fragmentation)
        scores: NDArray[np.int64]
        if ask.gpu is None:
            scores = ask.slope.dot(ask.at(self._capacity.part, slots))
        else:
            scores = self._devices.points(ask.gpu, slots)
        scores <<= _RANK_BITS
        scores += ask.base.take(slots)
        scores[unfit] = _UNFIT
        return scores

    def _score_by_cost(
        self,
        ask: Ask,
        slots: NDArray[np.int64],
        fit: NDArray[np.int64],
        fragmentation: Fragmentation,
    ) -> NDArray[np.int64]:
        """The scores of some nodes by what the pod costs there; only where it fits is that known.

        Many numpy calls for each node: where a cluster is packed, most nodes are spared them.
        """
        scores = np.full(len(slots), _UNFIT, dtype=np.int64)
        if len(fit):
            among = slots.take(fit)
            points = fragmentation.points(ask.shape, among) << _TIE_BITS
            points += self._tie(ask, among)
            scores[fit] = (points << _RANK_BITS) + ask.base.take(among)
        return scores

    def _tie(self, ask: Ask, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """How full or empty some nodes would be, among those on which a pod costs the same."""
        count = int(np.count_nonzero(ask.slope))
        if not count:
            return np.zeros(len(slots), dtype=np.int64)
        fill = ask.slope @ ask.at(self._capacity.part, slots) - ask.takes.take(slots)
        most = count * WHOLE
        if self.mode == "pack":
            fill += most
        steps: NDArray[np.int64] = (np.clip(fill, 0, most) << _TIE_BITS) // (most + 1)
        return steps

    def version(self) -> int:
        """Grows whenever the scores of all nodes must be computed anew: each term only grows."""
        nodes = self._nodes
        return (
            nodes.version
            + len(nodes.slots.names)
            + len(self._resources.names)
            + self._capacity.epoch
        )
