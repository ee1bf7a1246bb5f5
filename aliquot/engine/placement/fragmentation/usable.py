"""How much of the room on a node the typical pods could use, for nodes alike.

Two things make what is left of cards unusable. *Fragments*: a part of a card, or too few idle
cards, that many typical requests do not fit, or that fit but for the node's cpu or memory. *Short
supply*: if the node has less cpu or memory for each card that is left than pods ask for on the
average, its last cards will find none, though the next pods may still fit.

The first is looked up: a table over cpu, memory and what is left of a card says how many of the
typical pods could use it. So what a node is worth takes a look-up for each of its cards, however
many requests are typical. All in integers: what cards have is in millionths, summed by weight.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.gpu import WHOLE_GPU

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_IDLE = 16
"""More idle cards than this serve as this many: no usual server has more."""
_HALVINGS = 6
"""The supply for which a halving of the shortage is taken: a sixth of what pods ask for on the
average. With a quarter to an eighth, and counting half or twice as much, the openb trace packs
within 0.1 points."""
_SHORTAGE = 2
"""How much cards that would find no supply at all count, beside fragments."""
_FINE = 10
"""Bits of the parts of a halving."""
_MOST_HALVINGS = 30
_UNFIT = 2**60
"""What a card costs that has too little left."""
_MOST_AMOUNT = 2**29
"""In the units of supply (milli-cpus, MiB), more than any node has: products stay in int64."""


class Request(NamedTuple):
    """A typical request, as one kind of node would serve it."""

    weight: int
    supply: tuple[int, int]
    """Milli-cpus and MiB of memory."""
    part: int
    """What it takes of each card, in millionths."""
    cards: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """What some nodes have left; all of it is 0 where there is none."""

    supply: Column
    """Milli-cpus and MiB, by node."""
    broken: Column
    """By place and node, what is left of cards that are not idle, in millionths."""
    levels: Column
    """The levels of these in the table."""
    idle: Column
    """How many idle cards each node has."""

    def take(self, slots: Column) -> "Rest":
        """Some of the nodes."""
        return Rest(*(each.take(slots, -1) for each in self.columns))

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of it."""
        return self.supply, self.broken, self.levels, self.idle


class UsableCards:
    """What typical requests make of the cards of nodes of one kind."""

    def __init__(self, requests: list[Request], weight: int) -> None:
        """`weight`: that of all typical requests, with those that such nodes cannot serve."""
        self.weight = weight
        self._steps = [np.unique([each.supply[i] for each in requests]) for i in (0, 1)]
        of_parts = [each.part for each in requests if not each.whole]
        self._parts = np.unique(np.array(of_parts, dtype=np.int64))
        self._level_of_part = {part: i + 1 for i, part in enumerate(self._parts.tolist())}
        self._idle = len(self._parts) + 1
        """Where the levels of idle cards begin, by how many of them there are."""
        self._table = self._tabled(requests)
        cards = sum(each.weight * each.part * each.cards for each in requests)
        asked = (sum(each.weight * each.supply[i] for each in requests) for i in (0, 1))
        self._mean = [min(amount * WHOLE_GPU // max(cards, 1), 2**62) for amount in asked]
        """What pods ask for beside a whole card, on the average."""

    def _tabled(self, requests: list[Request]) -> Column:
        """By cpu, memory and level: the weight of the requests that could use such a card."""
        deep, wide = (len(steps) + 1 for steps in self._steps)
        table = np.zeros((deep, wide, self._idle + MOST_IDLE + 1), dtype=np.int64)
        asked = np.array([each.supply for each in requests], dtype=np.int64).reshape(-1, 2)
        cpu, memory = (steps.searchsorted(asked[:, i]) + 1 for i, steps in enumerate(self._steps))
        weights = np.array([each.weight for each in requests], dtype=np.int64)
        levels = np.array([self._level_of(each) for each in requests], dtype=np.int64)
        np.add.at(table, (cpu, memory, levels), weights)
        shared = levels < self._idle  # an idle card serves these as well
        np.add.at(table[:, :, self._idle + 1], (cpu[shared], memory[shared]), weights[shared])
        np.cumsum(table, axis=0, out=table)
        np.cumsum(table, axis=1, out=table)
        for part in (table[:, :, : self._idle], table[:, :, self._idle :]):
            np.cumsum(part, axis=2, out=part)
        self._shape = table.shape
        return table.ravel()

    def _level_of(self, request: Request) -> int:
        """The lowest level of cards that could serve a request."""
        if request.whole:
            return self._idle + min(request.cards, MOST_IDLE)
        return self._level_of_part[request.part]

    def _base(self, supply: Column) -> Column:
        """Where in the table the levels of nodes with this supply begin."""
        cpu, memory = (
            steps.searchsorted(amount, "right")
            for steps, amount in zip(self._steps, supply, strict=True)
        )
        base: Column = (cpu * self._shape[1] + memory) * self._shape[2]
        return base

    def levels(self, broken: Column) -> Column:
        """The levels of what is left of cards."""
        found: Column = self._parts.searchsorted(broken.ravel(), "right")
        return found.reshape(broken.shape)

    def _fragments(self, base: Column, broken: Column, levels: Column) -> Column:
        """What is unusable of each of these rests of cards."""
        unusable: Column = broken * (self.weight - self._table.take(base + levels))
        return unusable

    def _idle_fragments(self, base: Column, number: Column) -> Column:
        """What is unusable of so many idle cards."""
        usable = self._table.take(base + (self._idle + np.minimum(number, MOST_IDLE)))
        unusable: Column = number * WHOLE_GPU * (self.weight - usable)
        return unusable

    def unusable(self, rest: Rest) -> Column:
        """The expected unusable part of what nodes have left, in millionths times weight."""
        base = self._base(rest.supply)
        fragments: Column = self._fragments(base, rest.broken, rest.levels).sum(axis=0)
        fragments += self._idle_fragments(base, rest.idle)
        fragments += self._shortage(rest.supply, _left(rest))
        return fragments

    def unusable_after(self, rest: Rest, pod: Request | None, supply: tuple[int, int]) -> Column:
        """The same once such a pod is there, on the cards that cost least; it fits.

        `pod` is its request of cards, if it makes any.
        """
        after = rest.supply - np.array(supply)[:, None]
        base, idle, left = self._base(after), rest.idle, _left(rest)
        by_card = self._fragments(base, rest.broken, rest.levels)
        found: Column = by_card.sum(axis=0)
        if pod is None:
            found += self._idle_fragments(base, idle)
        elif pod.whole:
            found += self._idle_fragments(base, np.maximum(idle - pod.cards, 0))
            left -= pod.cards * WHOLE_GPU
        else:
            found += self._idle_fragments(base, idle)
            broken, fresh = self._costs(base, rest, by_card, pod.part)
            cheapest = np.minimum(broken.min(axis=0), fresh)
            count = min(pod.cards, len(broken))
            if count > 1:
                options = np.concatenate((broken, np.tile(fresh, (count, 1))))
                options.partition(count - 1, axis=0)
                cheapest = np.minimum(options[:count], _UNFIT // count).sum(axis=0)
            found += np.minimum(cheapest, _UNFIT)
            left -= count * pod.part
        found += self._shortage(after, np.maximum(left, 0))
        return found

    def _costs(self, base: Column, rest: Rest, by_card: Column, part: int) -> tuple[Column, Column]:
        """By what the fragments of each card grow if a part of it goes; and of an idle card."""
        broken = rest.broken - part
        costs = np.where(
            broken >= 0, self._fragments(base, broken, self.levels(broken)) - by_card, _UNFIT
        )
        rests = np.full(1, WHOLE_GPU - part)
        fresh = self._fragments(base, rests, self.levels(rests))
        fresh -= self._idle_fragments(base, rest.idle)
        fresh += self._idle_fragments(base, np.maximum(rest.idle - 1, 0))
        return costs, np.where(rest.idle > 0, fresh, _UNFIT)

    def card_points(self, rest: Rest, pod: Request, is_idle: Mask) -> Column:
        """The points of the cards of one node for such a pod, the more the better."""
        after = rest.supply - np.array(pod.supply)[:, None]
        base = self._base(after)
        by_card = self._fragments(base, rest.broken, rest.levels)
        broken, fresh = self._costs(base, rest, by_card, pod.part)
        points: Column = _UNFIT - np.where(is_idle, fresh[0], broken[:, 0])
        return points

    def _shortage(self, supply: Column, left: Column) -> Column:
        """The part of the cards left that will find no cpu or memory.

        It halves with each sixth of the average request that there is more of the scarcer.
        """
        halvings = np.full(left.shape, _MOST_HALVINGS << _FINE, dtype=np.int64)
        least = np.maximum(left, 1)
        for amount, mean in zip(supply, self._mean, strict=True):
            if mean:
                has = np.minimum(np.maximum(amount, 0), _MOST_AMOUNT) * WHOLE_GPU // least
                np.minimum(halvings, (has * _HALVINGS << _FINE) // mean, out=halvings)
        whole, fine = halvings >> _FINE, halvings & ((1 << _FINE) - 1)
        part = ((2 << _FINE) - fine) << (19 - _FINE) >> whole
        short: Column = (left * part >> 20) * (_SHORTAGE * self.weight)
        return short


def _left(rest: Rest) -> Column:
    """What each node has left of cards, in millionths of one."""
    left: Column = rest.broken.sum(axis=0) + rest.idle * WHOLE_GPU
    return left
