"""The mix: which requests of GPU cards the cluster's pods make, and how often.

It is read off the pods that are known, waiting and bound alike, and off nothing else: an engine
that is made anew from the cluster has the same mix. So that a pod more or less rarely changes it,
a request counts by powers of two, and only the most frequent are typical.
"""

from bisect import bisect_left, insort

from aliquot.engine.model.gpu import CARD_RESOURCES
from aliquot.engine.model.pod import Pod, Shape

_MOST_TYPICAL = 64
"""How many requests are typical: 64 cover nine tenths of the pods of the openb trace, whose 151
requests packed no better; one bit each tells which of them a node could serve."""
_MOST_DOUBLINGS = 14
"""A request that is rarer than the most frequent by more doublings does not count, so that all
weights together stay below 2**21."""

Weights = tuple[tuple[Shape, int], ...]
"""Requests and how much each counts."""


class Mix:
    """Counts the requests of cards that the known pods make."""

    def __init__(self) -> None:
        self.version = 0
        """Grows whenever the typical requests, or how much they count, change."""
        self._counts: dict[Shape, int] = {}
        self._by_doublings: dict[int, list[tuple[str, Shape]]] = {}
        """The requests that as many pods make, up to the next power of two, in a fixed order."""
        self._words: dict[Shape, str] = {}
        """By what requests are told apart in that order."""
        self._typical: Weights = ()
        self._changed = False

    def note(self, old: Pod | None, new: Pod | None) -> None:
        """Count a pod that has come, changed or gone."""
        before = None if old is None else old.shape
        after = None if new is None else new.shape
        if before is not after and before != after:
            self._count(before, -1)
            self._count(after, +1)

    def _count(self, shape: Shape | None, change: int) -> None:
        if shape is None or not asks_for_cards(shape):
            return
        before = self._counts.get(shape, 0)
        now = self._counts[shape] = before + change
        if before.bit_length() == now.bit_length():
            return
        self._changed = True
        entry = self._words.setdefault(shape, repr(shape)), shape
        if before:
            alike = self._by_doublings[before.bit_length()]
            del alike[bisect_left(alike, entry[0], key=_word)]
            if not alike:
                del self._by_doublings[before.bit_length()]
        if now:
            insort(self._by_doublings.setdefault(now.bit_length(), []), entry, key=_word)
        else:
            del self._counts[shape], self._words[shape]

    @property
    def typical(self) -> Weights:
        """The most frequent requests, and how much each counts."""
        if self._changed:
            self._changed = False
            typical = self._most_frequent()
            if typical != self._typical:
                self._typical = typical
                self.version += 1
        return self._typical

    def _most_frequent(self) -> Weights:
        found: list[tuple[Shape, int]] = []
        most = max(self._by_doublings, default=0)
        for doublings in sorted(self._by_doublings, reverse=True):
            weight = 1 << _MOST_DOUBLINGS >> (most - doublings)
            alike = self._by_doublings[doublings][: _MOST_TYPICAL - len(found)]
            found += [(shape, weight) for _, shape in alike] if weight else []
        return tuple(found)


def asks_for_cards(shape: Shape) -> bool:
    """Does such a pod ask for cards, or parts of them? Slices are no parts of any card we know."""
    if shape.gpu is not None:
        return not shape.gpu.sliced
    return any(name in CARD_RESOURCES for name, _ in shape.requests)


def _word(entry: tuple[str, Shape]) -> str:
    return entry[0]
