"""The claim queue: the lanes to be tried in this cycle, in order.

`ClaimQueue` orders lanes by the importance of their heads. In `TurnQueue`, for policies in which
groups (queues, namespaces) take turns, each group has a queue of its own, and the group with the
least turn is first. A turn changes with every start, so a group that was first is ranked again
before the next claim is taken.
"""

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from aliquot.engine.model.importance import ImportanceKey, Natural
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.lane import Lane

Place = tuple[int, int, Natural, int, Lane, Claim]
"""The claim's key, flat because flat tuples compare faster; then the order of pushes."""

Group = Hashable
"""What takes turns: a quota, a namespace in it, and so on."""

Path = Callable[[Claim], tuple[Group, ...]]
"""The groups that a claim is in, the outermost first."""

Turn = Callable[[Group, Claim], Any]
"""The turn of a group whose first claim this is; the least turn comes first."""

IsDue = Callable[[Lane, Claim], bool]
"""Is a lane still in the queue with this head? If not, the place is out of date."""


class ClaimQueue:
    """Lanes, ordered by the importance of their heads."""

    def __init__(self) -> None:
        self._heap: list[Place] = []
        self._pushed = 0

    def push(self, lane: Lane, claim: Claim) -> None:
        """Add a lane with this head."""
        heapq.heappush(self._heap, self._place(lane, claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """The first lane and its head; None if the queue is empty."""
        if not self._heap:
            return None
        *_, lane, claim = self._heap[0]
        return lane, claim

    def drop(self) -> None:
        """Remove the first lane."""
        heapq.heappop(self._heap)

    def replace(self, lane: Lane, claim: Claim) -> None:
        """Remove the first lane, and add this one."""
        heapq.heapreplace(self._heap, self._place(lane, claim))

    def reorder(self) -> None:
        """Turns have changed; without turns, nothing to do."""

    def position(self, claim: Claim) -> "Position":
        """The claim's place in the order now, to be compared by `precedes`."""
        return (), claim.key

    def empty_copy(self) -> "ClaimQueue":
        """An empty queue of the same order."""
        return ClaimQueue()

    def _place(self, lane: Lane, claim: Claim) -> Place:
        self._pushed += 1
        return (*claim.key, self._pushed, lane, claim)


class TurnQueue(ClaimQueue):
    """Groups take turns, and inside a group the groups that it consists of."""

    def __init__(self, path: Path, turn: Turn, is_due: IsDue) -> None:
        super().__init__()
        self._path = path
        self._turn = turn
        self._all = _GroupQueue(turn, is_due)
        self._front: list[Place] = []

    def push(self, lane: Lane, claim: Claim) -> None:
        """Add a lane to its group; if it is first there, the group may come first."""
        self._all.push(self._path(claim), self._place(lane, claim))

    def first(self) -> tuple[Lane, Claim] | None:
        """The first lane, and its head, of the group whose turn it is."""
        place = self._all.first()
        if place is None:
            return None
        self._front = self._all.use()
        return place[-2:]

    def drop(self) -> None:
        """Remove the first lane; its group is ranked again when `first` is next called."""
        heapq.heappop(self._front)

    def replace(self, lane: Lane, claim: Claim) -> None:
        """Remove the first lane, and add this one of the same group."""
        heapq.heapreplace(self._front, self._place(lane, claim))

    def reorder(self) -> None:
        """Turns have changed: rank all groups again."""
        self._all.reorder()

    def position(self, claim: Claim) -> "Position":
        """The turns of the claim's groups as they are now, then its importance."""
        turn = self._turn
        return tuple([(each, turn(each, claim)) for each in self._path(claim)]), claim.key

    def empty_copy(self) -> ClaimQueue:
        """An empty queue of the same order."""
        return TurnQueue(self._path, self._turn, _always)


class _GroupQueue:
    """The queue of one group: either of groups that take turns, or of lanes, never both.

    A group keeps the rank that it had when it was pushed. Only the group that was first, and
    started a claim, can have got a later turn since: it is ranked again before the next `first`.
    A place that is out of date ranks no group: which ones there are depends on the order of events.
    """

    __slots__ = (
        "_first",
        "_groups",
        "_is_due",
        "_lanes",
        "_last_used",
        "_order",
        "_ranked",
        "_ranks",
        "_turn",
        "_used",
    )

    def __init__(self, turn: Turn, is_due: IsDue) -> None:
        self._turn = turn
        self._is_due = is_due
        self._groups: dict[Group, _GroupQueue] = {}
        self._order: list[_Rank] = []
        self._ranks: dict[Group, _Rank] = {}
        """The current rank of each group; any other in `_order` is out of date."""
        self._ranked = 0
        self._lanes: list[Place] = []
        self._first: Place | None = None
        self._used = False
        self._last_used: Group = None
        """The group that was first when last used: it may have started a claim."""

    def push(self, path: tuple[Group, ...], place: Place) -> bool:
        """Add a lane; is another lane first now?"""
        before = self._first
        if path:
            queue = self._groups.get(path[0])
            if queue is None:
                queue = self._groups[path[0]] = _GroupQueue(self._turn, self._is_due)
            if not queue.push(path[1:], place):
                return False
            first = queue.first()
            assert first is not None
            heapq.heappush(self._order, self._rank(path[0], first))
        else:
            heapq.heappush(self._lanes, place)
        self._update_first()
        return self._first is not before

    def first(self) -> Place | None:
        """The place of the first lane; None if there is none."""
        if self._used:
            self._used = False
            queue = self._groups.get(self._last_used)
            if queue is not None:
                self._rank_again(self._last_used, queue)
            else:
                self._update_first()
        return self._first

    def use(self) -> list[Place]:
        """The heap of lanes that the first one is in; the caller may start its head."""
        self._used = True
        if not self._groups:
            return self._lanes
        self._last_used = self._order[0][_GROUP]
        return self._groups[self._last_used].use()

    def reorder(self) -> None:
        """Rank all groups again."""
        self._order, self._ranks, groups = [], {}, self._groups
        self._groups = {}
        for group, queue in groups.items():
            queue.reorder()
            place = queue.first()
            if place is not None:
                self._groups[group] = queue
                self._order.append(self._rank(group, place))
        heapq.heapify(self._order)
        self._used = False
        self._update_first()

    def _rank_again(self, group: Group, queue: "_GroupQueue") -> None:
        """Rank a group again, or remove it if it is empty."""
        place, order = queue.first(), self._order
        if place is None:
            del self._ranks[group], self._groups[group]
        elif order[0] is self._ranks[group]:
            heapq.heapreplace(order, self._rank(group, place))
        else:
            heapq.heappush(order, self._rank(group, place))
        self._update_first()

    def _update_first(self) -> None:
        """Find the first lane, dropping ranks and places that are out of date."""
        order, ranks = self._order, self._ranks
        while order:
            rank = order[0]
            group = rank[_GROUP]
            if ranks.get(group) is rank:
                self._first = self._groups[group].first()
                return
            heapq.heappop(order)
        lanes, is_due = self._lanes, self._is_due
        while lanes:
            place = lanes[0]
            if is_due(place[-2], place[-1]):
                self._first = place
                return
            heapq.heappop(lanes)
        self._first = None

    def _rank(self, group: Group, place: Place) -> "_Rank":
        """By its turn, then the importance of its first claim, then the order of pushes."""
        self._ranked += 1
        priority, created, name, _, _, claim = place
        rank = self._turn(group, claim), priority, created, name, self._ranked, group
        self._ranks[group] = rank
        return rank


def _always(lane: Lane, claim: Claim) -> bool:
    return True


_Rank = tuple[Any, int, int, Natural, int, Group]
"""Flat, as `Place` is."""
_GROUP = -1
"""Where in a rank its group is."""

Position = tuple[tuple[tuple[Group, Any], ...], ImportanceKey]
"""The groups of a claim with their turns, the outermost first; and its importance."""


def precedes(one: Position, other: Position) -> bool:
    """Does a claim in the one position come before a claim in the other?

    Groups take turns with their siblings: where two claims first differ in a group, its turn
    decides; inside the same groups, importance.
    """
    for (group, turn), (another, later) in zip(one[0], other[0], strict=False):
        if group != another:
            return bool((turn, one[1]) < (later, other[1]))
    return one[1] < other[1]
