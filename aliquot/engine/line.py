"""The lanes that are to be tried in this cycle, in order.

By the importance of their heads; or, where a policy has quotas take turns, first by quota: each has
a line of its own, and the quota whose turn it is comes first. A turn changes with every start, so
where a quota stands is looked up when it gets to the front, and put right if others are before it.
"""

import heapq
from collections.abc import Callable
from typing import Any

from aliquot.engine.claim import Claim
from aliquot.engine.lane import Lane
from aliquot.engine.order import Natural

Place = tuple[int, int, Natural, int, Lane, Claim]
"""The claim's key, laid flat because flat tuples compare faster; then as they came."""

Turn = Callable[[Claim], Any]
"""What comes before importance; the less, the sooner."""


class Line:
    """Lanes by the importance of their heads."""

    def __init__(self) -> None:
        self._heap: list[Place] = []
        self._pushed = 0

    def push(self, lane: Lane, claim: Claim) -> None:
        """Put a lane in line with this head."""
        heapq.heappush(self._heap, self._place(lane, claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """Who is at the front, if anybody is."""
        if not self._heap:
            return None
        *_, lane, claim = self._heap[0]
        return lane, claim

    def drop(self) -> None:
        """Send the front away."""
        heapq.heappop(self._heap)

    def replace(self, lane: Lane, claim: Claim) -> None:
        """Send the front away, and put a lane in line."""
        heapq.heapreplace(self._heap, self._place(lane, claim))

    def line_up(self) -> None:
        """Turns have changed; here nobody takes any."""

    def another(self) -> "Line":
        """An empty line of the same order."""
        return Line()

    def _place(self, lane: Lane, claim: Claim) -> Place:
        self._pushed += 1
        return (*claim.key, self._pushed, lane, claim)


class Turns(Line):
    """Quotas take turns."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn
        self._quotas: dict[str | None, list[Place]] = {}
        self._order: list[tuple[tuple[Any, ...], int, str | None]] = []

    def push(self, lane: Lane, claim: Claim) -> None:
        """Put a lane in the line of its quota; if it comes first there, so may its quota."""
        line = self._quotas.setdefault(claim.quota, [])
        heapq.heappush(line, self._place(lane, claim))
        if line[0][-1] is claim:
            heapq.heappush(self._order, self._entry(claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """The first of the quota whose turn it is."""
        while self._order:
            stood, _, quota = self._order[0]
            line = self._quotas.get(quota)
            if not line:
                heapq.heappop(self._order)
                continue
            *_, lane, claim = line[0]
            if self._standing(claim) <= stood:
                return lane, claim
            heapq.heapreplace(self._order, self._entry(claim))
        return None

    def drop(self) -> None:
        """Send the front away; the next one of its quota has its turn."""
        quota = self._order[0][2]
        line = self._quotas[quota]
        heapq.heappop(line)
        if line:
            heapq.heapreplace(self._order, self._entry(line[0][-1]))
        else:
            heapq.heappop(self._order)

    def replace(self, lane: Lane, claim: Claim) -> None:
        """The same, with a lane of the same quota in its place."""
        line = self._quotas[claim.quota]
        heapq.heapreplace(line, self._place(lane, claim))
        heapq.heapreplace(self._order, self._entry(line[0][-1]))

    def line_up(self) -> None:
        """Turns have changed: let the quotas line up anew."""
        self._order = [self._entry(line[0][-1]) for line in self._quotas.values() if line]
        heapq.heapify(self._order)

    def another(self) -> Line:
        """An empty line of the same order."""
        return Turns(self._turn)

    def _standing(self, claim: Claim) -> tuple[Any, ...]:
        """The turn of its quota, then its importance."""
        return (self._turn(claim), *claim.key)

    def _entry(self, claim: Claim) -> tuple[tuple[Any, ...], int, str | None]:
        self._pushed += 1
        return self._standing(claim), self._pushed, claim.quota
