"""Reference rules of packing, written small: what the engine's placements are measured against.

They share no code with the engine. As in the published simulator of FGD ("Beware of Fragmentation",
ATC'23), best fit, worst fit and the dot product look at cpu and cards, and so do FGD's fragments;
whether a pod fits depends on memory as well. Of nodes that are equal, the first is taken.
"""

import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.bench.packing.workload import CARD, Workload, asked_parts, is_open
from aliquot.engine import Pod, Shape

Column = NDArray[np.int64]
_CPU, _CARDS = 128_000, 8 * CARD
"""The cpu and cards of the largest server, by which the published simulator normalises."""
_NEVER = -(2**62)


class Servers:
    """What each server has left."""

    def __init__(self, workload: Workload) -> None:
        self.nodes = workload.nodes
        cards = workload.cards
        has = [dict(node.allocatable) for node in self.nodes]
        self.left = np.array([[each["cpu"], each["memory"], each["pods"]] for each in has]).T
        number = np.array([cards[node.name] for node in self.nodes])
        places = np.arange(max(int(number.max()), 1))[:, None]
        self.cards = np.where(places < number, CARD, 0)
        self.total = int(self.cards.sum())

    @property
    def allocated(self) -> float:
        """The percentage of all cards that is in use."""
        return 100 * (1 - int(self.cards.sum()) / self.total)


class Wanted:
    """What a pod asks for."""

    def __init__(self, shape: Shape, servers: Servers) -> None:
        asks = dict(shape.requests)
        self.room = np.array([asks.get("cpu", 0), asks.get("memory", 0), asks.get("pods", 0)])
        self.count = 0 if shape.gpu is None else shape.gpu.count
        self.part = asked_parts(shape) // max(self.count, 1)
        self.is_part = 0 < self.part < CARD
        self.open = np.array([is_open(node, shape) for node in servers.nodes])

    def fits(self, servers: Servers, at: Column) -> NDArray[np.bool_]:
        """Which of these servers hold such a pod."""
        fits = self.open[at] & (servers.left[:, at] >= self.room[:, None]).all(axis=0)
        if self.count:
            fits &= (servers.cards[:, at] >= self.part).sum(axis=0) >= self.count
        return fits


Judge = Callable[[Wanted, Column, Column], tuple[Column, Column]]
"""Of a pod, and what some servers have left of cpu and cards: the points of each, the more the
better, and the place of the card for a part."""


def best_fit(wanted: Wanted, cpu: Column, cards: Column) -> tuple[Column, Column]:
    """The server, and the card, with the least left."""
    return -_left(wanted, cpu, cards), _least(wanted, cards)


def worst_fit(wanted: Wanted, cpu: Column, cards: Column) -> tuple[Column, Column]:
    """The server, and the card, with the most left."""
    return _left(wanted, cpu, cards), cards.argmax(axis=0)


def dot_product(wanted: Wanted, cpu: Column, cards: Column) -> tuple[Column, Column]:
    """The server whose free resources, times what is asked for, are least."""
    asked = wanted.count * wanted.part
    of_cpu, of_cards = cpu * int(wanted.room[0]) * _CARDS**2, cards.sum(axis=0) * asked * _CPU**2
    return -(of_cpu // _CPU + of_cards // _CPU), _least(wanted, cards)


def _left(wanted: Wanted, cpu: Column, cards: Column) -> Column:
    """What would be left of a server, of the largest one's cpu and cards."""
    of_cards = cards.sum(axis=0) - wanted.count * wanted.part
    left: Column = (cpu - wanted.room[0]) * _CARDS + of_cards * _CPU
    return left


def _least(wanted: Wanted, cards: Column) -> Column:
    """The fullest card that fits."""
    place: Column = np.where(cards >= wanted.part, cards, 2 * CARD).argmin(axis=0)
    return place


class Fgd:
    """FGD: where the fragments grow least, by the whole workload's mix.

    For a typical pod, all cards of a server that it does not fit are fragments; of one that it
    fits, the cards that have too little for it. Their sum is weighted by how frequent each pod is.
    A card is of use to so many pods as ask for at most the server's cpu, and at most what the card
    has left; one that is idle also to those that ask for at most so many idle cards.
    """

    def __init__(self, pods: Sequence[Pod]) -> None:
        asks = [(dict(pod.shape.requests).get("cpu", 0), pod.shape) for pod in pods]
        self._cpus = np.unique([cpu for cpu, shape in asks if shape.gpu is not None])
        self._weight = sum(shape.gpu is not None for _, shape in asks)
        self._of_use = np.zeros((len(self._cpus) + 1, CARD + 20), dtype=np.int64)
        """By cpu and what a card has left; above that, by how many cards are idle."""
        for cpu, shape in asks:
            if shape.gpu is not None:
                row, part = int(np.searchsorted(self._cpus, cpu)) + 1, asked_parts(shape)
                level = part if part < CARD else CARD + shape.gpu.count
                self._of_use[row, level] += 1
        np.cumsum(self._of_use, axis=0, out=self._of_use)
        np.cumsum(self._of_use, axis=1, out=self._of_use)

    def fragments(self, cpu: Column, cards: Column) -> Column:
        """The fragments of servers, in thousandths of a card times pods."""
        idle = (cards == CARD).sum(axis=0)
        levels = np.where(cards == CARD, CARD + idle, cards)
        rows = np.searchsorted(self._cpus, cpu, side="right")
        found: Column = (cards * (self._weight - self._of_use[rows, levels])).sum(axis=0)
        return found

    def __call__(self, wanted: Wanted, cpu: Column, cards: Column) -> tuple[Column, Column]:
        """The server, and the card, whose use lets the fragments grow least."""
        before, after = self.fragments(cpu, cards), cpu - wanted.room[0]
        if not wanted.is_part:
            idle = cards == CARD
            taken = idle & (idle.cumsum(axis=0) <= wanted.count)
            left = np.where(taken, 0, cards)
            return before - self.fragments(after, left), np.zeros(len(cpu), dtype=np.int64)
        points = np.full(cards.shape, _NEVER)
        for place in range(len(cards)):
            left = cards.copy()
            left[place] -= wanted.part
            fits = left[place] >= 0
            left[place] = np.maximum(left[place], 0)
            points[place] = np.where(fits, before - self.fragments(after, left), _NEVER)
        return points.max(axis=0), points.argmax(axis=0)


class Random:
    """Any server, and any card, that fits."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def choose(self, wanted: Wanted, servers: Servers) -> tuple[int, int] | None:
        """A server and a card."""
        every = np.arange(len(servers.nodes))
        fitting = np.flatnonzero(wanted.fits(servers, every)).tolist()
        if not fitting:
            return None
        node = self._rng.choice(fitting)
        cards = np.flatnonzero(servers.cards[:, node] >= wanted.part).tolist()
        return node, self._rng.choice(cards) if wanted.count else 0


class Best:
    """The server with the most points; those of servers that have changed are judged again."""

    def __init__(self, judge: Judge, servers: Servers) -> None:
        self._judge = judge
        self._log: list[int] = []
        self._points: dict[Wanted, tuple[int, Column, Column]] = {}
        self._every = np.arange(len(servers.nodes))

    def choose(self, wanted: Wanted, servers: Servers) -> tuple[int, int] | None:
        """A server and a card."""
        known = self._points.get(wanted)
        if known is None:
            at = self._every
            points, card = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
        else:
            read, points, card = known
            at = np.unique(np.array(self._log[read:], dtype=np.int64))
        if len(at):
            judged, card[at] = self._judge(wanted, servers.left[0, at], servers.cards[:, at])
            points[at] = np.where(wanted.fits(servers, at), judged, _NEVER)
        self._points[wanted] = len(self._log), points, card
        node = int(points.argmax())
        if points[node] == _NEVER:
            return None
        self._log.append(node)
        return node, int(card[node])


def packed(workload: Workload, pods: Sequence[Pod], rule: str, seed: int) -> float:
    """The percentage of all cards in use once these pods have come, by a rule."""
    servers = Servers(workload)
    judges: dict[str, Judge] = {
        "best fit": best_fit,
        "worst fit": worst_fit,
        "dot product": dot_product,
    }
    chooser: Random | Best
    if rule == "random":
        chooser = Random(seed)
    else:
        chooser = Best(judges[rule] if rule in judges else Fgd(workload.pods), servers)
    asked: dict[Shape, Wanted] = {}
    for pod in pods:
        wanted = asked.get(pod.shape)
        if wanted is None:
            wanted = asked[pod.shape] = Wanted(pod.shape, servers)
        chosen = chooser.choose(wanted, servers)
        if chosen is not None:
            _place(servers, wanted, *chosen)
    return servers.allocated


def _place(servers: Servers, wanted: Wanted, node: int, card: int) -> None:
    servers.left[:, node] -= wanted.room
    if wanted.is_part and wanted.count == 1:
        servers.cards[card, node] -= wanted.part
    elif wanted.count:
        fitting = np.flatnonzero(servers.cards[:, node] >= wanted.part)[: wanted.count]
        servers.cards[fitting, node] -= wanted.part
