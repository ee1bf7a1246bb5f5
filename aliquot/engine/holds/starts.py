"""What started in a cycle, laid out so that the starts behind a claim are found without a pass.

Very many claims may wait and very many have started, and each pair of them is a question: was the
one passed by the other? Starts are kept as a tree of the groups that take turns. At each level the
groups are in order, and so are the starts in each, so that the first that is looked at comes behind
the claim, or none does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aliquot.engine.queue.claim_queue import Group, Position

Place = tuple[Any, ...]
"""The turn of a group, and the importance of a claim in it; the later one is greater."""


@dataclass(slots=True)
class Start:
    """Claims of one kind that have started: the last one's position, and what they took."""

    position: Position
    room: frozenset[int]
    charge: frozenset[int]
    path: tuple[int, ...]
    nodes: set[int] = field(default_factory=set)


class Starts:
    """What started in a cycle, by the resources that it took, and by the accounts it took them in.

    An account is a slot of the quota tree.
    """

    def __init__(self, starts: Iterable[Start]) -> None:
        self._all = list(starts)
        self._taken: dict[tuple[int, int | None], list[Start]] = {}
        """By row and account: who took right there; by row and None: who took room."""
        for each in self._all:
            for row in each.room:
                self._taken.setdefault((row, None), []).append(each)
            for row in each.charge:
                for slot in each.path:
                    self._taken.setdefault((row, slot), []).append(each)
        self._levels: dict[tuple[int | None, int | None], _Level] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def behind_in_room(self, position: Position, row: int | None) -> Iterator[Start]:
        """The starts behind this position that took room of a resource; of any, if it is None."""
        return self._behind(position, row, None)

    def behind_in_right(self, position: Position, row: int, account: int) -> Iterator[Start]:
        """The starts behind this position that were charged a resource in an account."""
        return self._behind(position, row, account)

    def _behind(self, position: Position, row: int | None, account: int | None) -> Iterator[Start]:
        level: _Level | None = self._levels.get((row, account))
        if level is None:
            starts = self._all if row is None else self._taken.get((row, account), [])
            level = self._levels[row, account] = _Level(starts, 0)
        while level is not None:
            yield from level.behind(position)
            level = level.below(position)


class _Level:
    """Starts whose groups are the same so far: by the next one, the last first in each.

    What is behind a position follows `claim_queue.precedes`: where two first differ in a group, the
    turn of that group decides, then importance; inside the same groups, importance alone.
    """

    def __init__(self, starts: list[Start], depth: int) -> None:
        self._starts = starts
        self._depth = depth
        self._ending: list[Start] = []
        """Those without a further group."""
        self._by_group: dict[Group, list[tuple[Place, Start]]] = {}
        for each in starts:
            path, key = each.position
            if depth < len(path):
                group, turn = path[depth]
                self._by_group.setdefault(group, []).append(((turn, key), each))
            else:
                self._ending.append(each)
        for found in self._by_group.values():
            found.sort(key=lambda pair: pair[0], reverse=True)
        self._groups = sorted(
            self._by_group, key=lambda group: self._by_group[group][0][0], reverse=True
        )
        self._below: dict[Group, _Level] = {}

    def behind(self, position: Position) -> Iterator[Start]:
        """The starts behind this position that are not in its own group here."""
        path, key = position
        if self._depth >= len(path):
            yield from (each for each in self._starts if each.position[1] > key)
            return
        yield from (each for each in self._ending if each.position[1] > key)
        own, turn = path[self._depth]
        yield from self._behind_in_others(own, (turn, key))

    def below(self, position: Position) -> "_Level | None":
        """The starts in the position's own group here, by the next one; None if there are none."""
        path, _ = position
        if self._depth >= len(path) or path[self._depth][0] not in self._by_group:
            return None
        own = path[self._depth][0]
        found = self._below.get(own)
        if found is None:
            starts = [each for _, each in self._by_group[own]]
            found = self._below[own] = _Level(starts, self._depth + 1)
        return found

    def _behind_in_others(self, own: Group, place: Place) -> Iterator[Start]:
        for group in self._groups:
            starts = self._by_group[group]
            if starts[0][0] <= place:
                return
            for later, each in starts if group != own else ():
                if later <= place:
                    break
                yield each
