"""The lanes that are to be tried in this cycle, in order.

By the importance of their heads; or, where a policy has groups take turns, first by group: each has
a line of its own, and the group whose turn it is comes first. A turn changes with every start, so
where a group stands is looked up when it gets to the front, and put right if others are before it.
"""

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from aliquot.engine.model.importance import Natural
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.lane import Lane

Place = tuple[int, int, Natural, int, Lane, Claim]
"""The claim's key, laid flat because flat tuples compare faster; then as they came."""

Group = Hashable
"""Who takes turns: a quota, a namespace in it, and so on."""

Path = Callable[[Claim], tuple[Group, ...]]
"""The groups that a claim is in, the widest first."""

Turn = Callable[[Group, Claim], Any]
"""When it is a group's turn, with this claim as its first; the less, the sooner."""


class ClaimQueue:
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

    def reorder(self) -> None:
        """Turns have changed; here nobody takes any."""

    def empty_copy(self) -> "ClaimQueue":
        """An empty line of the same order."""
        return ClaimQueue()

    def _place(self, lane: Lane, claim: Claim) -> Place:
        self._pushed += 1
        return (*claim.key, self._pushed, lane, claim)


class TurnQueue(ClaimQueue):
    """Groups take turns, and inside a group the groups of which it consists."""

    def __init__(self, path: Path, turn: Turn) -> None:
        super().__init__()
        self._path = path
        self._turn = turn
        self._all = _Branch(turn)
        self._front: list[Place] = []

    def push(self, lane: Lane, claim: Claim) -> None:
        """Put a lane in the line of its group; if it comes first there, so may its group."""
        self._all.push(self._path(claim), self._place(lane, claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """The first of the group whose turn it is."""
        place = self._all.first()
        if place is None:
            return None
        self._front = self._all.use()
        return place[-2:]

    def drop(self) -> None:
        """Send the front away; where its group stands now is seen when it gets to the front."""
        heapq.heappop(self._front)

    def replace(self, lane: Lane, claim: Claim) -> None:
        """The same, with a lane of the same group in its place."""
        heapq.heapreplace(self._front, self._place(lane, claim))

    def reorder(self) -> None:
        """Turns have changed: let all groups line up anew."""
        self._all.reorder()

    def empty_copy(self) -> ClaimQueue:
        """An empty line of the same order."""
        return TurnQueue(self._path, self._turn)


class _Branch:
    """A group: either of groups that take turns, or of lanes in order of importance, never both.

    Where a group stood when it lined up is remembered. Only whoever was in front, and did
    something, can have fallen back since: it lines up anew before the next one is asked for.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._groups: dict[Group, _Branch] = {}
        self._order: list[_Standing] = []
        self._stands: dict[Group, _Standing] = {}
        """Where each group stands; whatever else is in the order is out of date."""
        self._lined_up = 0
        self._lanes: list[Place] = []
        self._first: Place | None = None
        self._used = False
        self._acted: Group = None
        """Who was in front when it was asked for, and may have done something."""

    def push(self, path: tuple[Group, ...], place: Place) -> bool:
        """Put a lane in line; is somebody else first now?"""
        before = self._first
        if path:
            branch = self._groups.get(path[0])
            if branch is None:
                branch = self._groups[path[0]] = _Branch(self._turn)
            if not branch.push(path[1:], place):
                return False
            first = branch.first()
            assert first is not None
            heapq.heappush(self._order, self._standing(path[0], first))
        else:
            heapq.heappush(self._lanes, place)
        self._find()
        return self._first is not before

    def first(self) -> Place | None:
        """Who is at the front, if anybody is."""
        if self._used:
            self._used = False
            if self._acted in self._groups:
                self._put_right(self._acted)
            else:
                self._find()
        return self._first

    def use(self) -> list[Place]:
        """The lanes among which the first one is: it may do something."""
        self._used = True
        if not self._groups:
            return self._lanes
        self._acted = self._order[0][-1]
        return self._groups[self._acted].use()

    def reorder(self) -> None:
        """Let the groups line up anew."""
        self._order, self._stands, groups = [], {}, self._groups
        self._groups = {}
        for group, branch in groups.items():
            branch.reorder()
            place = branch.first()
            if place is not None:
                self._groups[group] = branch
                self._order.append(self._standing(group, place))
        heapq.heapify(self._order)
        self._used = False
        self._find()

    def _put_right(self, group: Group) -> None:
        """A group may have fallen back, or be empty."""
        place = self._groups[group].first()
        if place is None:
            del self._stands[group], self._groups[group]
        elif self._order[0] is self._stands[group]:
            heapq.heapreplace(self._order, self._standing(group, place))
        else:
            heapq.heappush(self._order, self._standing(group, place))
        self._find()

    def _find(self) -> None:
        """Who is first, leaving aside what is out of date."""
        while self._order and self._stands.get(self._order[0][-1]) is not self._order[0]:
            heapq.heappop(self._order)
        if self._order:
            self._first = self._groups[self._order[0][-1]].first()
        else:
            self._first = self._lanes[0] if self._lanes else None

    def _standing(self, group: Group, place: Place) -> "_Standing":
        """Its turn, then the importance of its first claim, then as they came."""
        self._lined_up += 1
        *key, _, _, claim = place
        standing = (self._turn(group, claim), *key), self._lined_up, group
        self._stands[group] = standing
        return standing


_Standing = tuple[tuple[Any, ...], int, Group]
