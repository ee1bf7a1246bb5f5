"""Which bound pods hold which cards, in columns: a row for each pod and card.

So what would come free of every card if some pods were evicted, be they one or ten thousand, is a
few numpy calls. Cards are told by the numbers that `gpus.devices` gives them.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.gpu import GpuAmount

_POD, _CARD, _TFLOPS, _VRAM = range(4)
_NO_POD = -1

Column = NDArray[np.int64]


class CardHolders:
    """The cards of bound pods, which are told by their slots."""

    def __init__(self) -> None:
        self._rows: dict[int, list[int]] = {}
        self._unused: list[int] = []
        self._data = np.full((4, 0), _NO_POD, dtype=np.int64)

    def add(self, pod: int, cards: list[int], amounts: tuple[GpuAmount, ...]) -> None:
        """Note what a pod holds of each of its cards."""
        while len(self._unused) < len(cards):
            self._lengthen()
        rows = self._rows[pod] = [self._unused.pop() for _ in cards]
        for row, card, amount in zip(rows, cards, amounts, strict=True):
            self._data[:, row] = (pod, card, *amount)

    def remove(self, pod: int) -> None:
        """Forget what a pod held; does nothing if it held no card."""
        rows = self._rows.pop(pod, None)
        if rows is not None:
            self._data[_POD, rows] = _NO_POD
            self._unused += rows

    def freed(self, pods: NDArray[np.bool_], cards: int) -> Column:
        """What of each of so many cards these pods hold, by number: compute, then memory."""
        held = self._data[:, self._data[_POD] != _NO_POD]
        held = held[:, pods.take(held[_POD])]
        amounts = (np.bincount(held[_CARD], held[row], cards) for row in (_TFLOPS, _VRAM))
        return np.array([each.astype(np.int64) for each in amounts])

    def _lengthen(self) -> None:
        """Make as many rows again."""
        here = self._data.shape[1]
        more = max(here, 64)
        self._data = np.concatenate((self._data, np.full((4, more), _NO_POD)), axis=1)
        self._unused += range(here + more - 1, here - 1, -1)
