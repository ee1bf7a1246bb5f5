"""Kinds of bound pods: pods of one kind take the same on any node, and are charged the same.

They differ in nothing but age, name and node, so where a victim set needs one of them, the youngest
will do, and the others need not be looked at (`reclaim.alike`). Most pods of a cluster are of few
kinds: the copies of a workload are all of one.
"""

from collections.abc import Hashable


class Kinds:
    """A number for each kind, for as long as a pod of it is bound; numbers are not used again."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._pods: dict[int, int] = {}
        self._known: dict[int, Hashable] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def join(self, kind: Hashable) -> int:
        """The number of a kind, for one pod more."""
        number = self._numbers.get(kind)
        if number is None:
            self._last += 1
            number = self._numbers[kind] = self._last
            self._known[number] = kind
        self._pods[number] = self._pods.get(number, 0) + 1
        return number

    def leave(self, number: int) -> None:
        """One pod less: with the last one the kind is forgotten."""
        self._pods[number] -= 1
        if not self._pods[number]:
            del self._pods[number], self._numbers[self._known.pop(number)]
