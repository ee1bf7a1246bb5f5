"""The lanes that are to be tried in this cycle, in order.

By the importance of their heads; or, where a policy has groups take turns, first by group: each has
a line of its own, and the group whose turn it is comes first. A turn changes with every start, so
where a group stands is looked up when it gets to the front, and put right if others are before it.
"""

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from aliquot.engine.claim import Claim
from aliquot.engine.lane import Lane
from aliquot.engine.order import Natural

Place = tuple[int, int, Natural, int, Lane, Claim]
"""The claim's key, laid flat because flat tuples compare faster; then as they came."""

Group = Hashable
"""Who takes turns: a quota, a namespace in it, and so on."""

Path = Callable[[Claim], tuple[Group, ...]]
"""The groups that a claim is in, the widest first."""

Turn = Callable[[Group, Claim], Any]
"""When it is a group's turn, with this claim as its first; the less, the sooner."""


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
    """Groups take turns, and inside a group the groups of which it consists."""

    def __init__(self, path: Path, turn: Turn) -> None:
        super().__init__()
        self._path = path
        self._turn = turn
        self._all = _Branch(turn)

    def push(self, lane: Lane, claim: Claim) -> None:
        """Put a lane in the line of its group; if it comes first there, so may its group."""
        self._all.push(self._path(claim), self._place(lane, claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """The first of the group whose turn it is."""
        place = self._all.first()
        return None if place is None else place[-2:]

    def drop(self) -> None:
        """Send the front away; where its group stands now is seen when it gets to the front."""
        heapq.heappop(self._all.front())

    def replace(self, lane: Lane, claim: Claim) -> None:
        """The same, with a lane of the same group in its place."""
        heapq.heapreplace(self._all.front(), self._place(lane, claim))

    def line_up(self) -> None:
        """Turns have changed: let all groups line up anew."""
        self._all.line_up()

    def another(self) -> Line:
        """An empty line of the same order."""
        return Turns(self._path, self._turn)


class _Branch:
    """A group: either of groups that take turns, or of lanes in order of importance.

    Where a group stood when it lined up is remembered. Only whoever was in front, and did
    something, can have fallen back since: it is looked up anew, and put right if others are before.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._groups: dict[Group, _Branch] = {}
        self._order: list[tuple[tuple[Any, ...], int, Group]] = []
        self._lanes: list[Place] = []
        self._used = False
        """Was the one in front asked for, and may have done something?"""

    def push(self, path: tuple[Group, ...], place: Place) -> bool:
        """Put a lane in line; is it first now?"""
        if not path:
            heapq.heappush(self._lanes, place)
            return self._lanes[0] is place
        group = path[0]
        branch = self._groups.get(group)
        if branch is None:
            branch = self._groups[group] = _Branch(self._turn)
        if not branch.push(path[1:], place):
            return False
        entry = self._entry(group, place)
        heapq.heappush(self._order, entry)
        return self._order[0] is entry

    def first(self) -> Place | None:
        """Who is at the front, if anybody is."""
        while self._order:
            stood, _, group = self._order[0]
            branch = self._groups.get(group)
            place = branch.first() if branch is not None else None
            if place is None:
                heapq.heappop(self._order)
                self._groups.pop(group, None)
                continue
            entry = self._entry(group, place) if self._used else None
            if entry is None or entry[0] <= stood:
                self._used = True
                return place
            self._used = False
            heapq.heapreplace(self._order, entry)
        return self._lanes[0] if self._lanes else None

    def front(self) -> list[Place]:
        """The lanes among which the first one is, once it was asked for."""
        return self._groups[self._order[0][2]].front() if self._order else self._lanes

    def line_up(self) -> None:
        """Let the groups line up anew."""
        self._order, self._used = [], False
        for group, branch in list(self._groups.items()):
            branch.line_up()
            place = branch.first()
            if place is None:
                del self._groups[group]
            else:
                self._order.append(self._entry(group, place))
        heapq.heapify(self._order)

    def _entry(self, group: Group, place: Place) -> tuple[tuple[Any, ...], int, Group]:
        """Its turn, then the importance of its first claim, then as they came."""
        *key, pushed, _, claim = place
        return (self._turn(group, claim), *key), pushed, group
