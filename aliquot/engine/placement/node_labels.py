"""The labels of all nodes, in columns: which nodes meet a requirement, in a few numpy calls.

A column is kept for each label key that nodes have: the number of each node's value among the
values of that key. So a requirement costs a look at its values and one pass over the nodes, however
many values it names; a key that no node has costs a lookup. The name of a node is a column as well.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.node import Node
from aliquot.engine.model.selector import Requirement, Term, whole_number

Mask = NDArray[np.bool_]
_NAME = "metadata.name"
"""The only field of nodes that terms select by."""
_ABSENT = 0
"""The number of a value that a node does not have."""


class _Key:
    """The values of one label: by slot, and numbered for a column."""

    def __init__(self) -> None:
        self.values: dict[int, str] = {}
        """The value of each slot that has the label."""
        self._numbers: dict[str, int] | None = None
        self._column: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._ordered: tuple[list[int], list[int]] | None = None
        """The values that are numbers, in order, and their numbers; few requirements compare."""

    def put(self, slot: int, value: str | None) -> None:
        """A node has this value now, or none."""
        if value is None:
            self.values.pop(slot, None)
        else:
            self.values[slot] = value
        self._numbers = None

    def among(self, values: Iterable[str], count: int) -> Mask:
        """The slots with one of these values."""
        numbers = self._numbered(count)
        return self._with([numbers[value] for value in values if value in numbers])

    def present(self, count: int) -> Mask:
        """The slots with any value."""
        self._numbered(count)
        found: Mask = self._column != _ABSENT
        return found

    def compared(self, bound: int, *, above: bool, count: int) -> Mask:
        """The slots whose value is a number above, or below, this one."""
        amounts, numbers = self._in_order(count)
        if above:
            return self._with(numbers[bisect_right(amounts, bound) :])
        return self._with(numbers[: bisect_left(amounts, bound)])

    def _with(self, numbers: list[int]) -> Mask:
        assert self._numbers is not None
        chosen = np.zeros(len(self._numbers) + 1, dtype=bool)
        chosen[numbers] = True
        found: Mask = chosen[self._column]
        return found

    def _numbered(self, count: int) -> dict[str, int]:
        """The number of each value; brings the column up to date."""
        if self._numbers is None or len(self._column) != count:
            distinct = dict.fromkeys(self.values.values())
            self._numbers = {value: number for number, value in enumerate(distinct, start=1)}
            self._column = np.zeros(count, dtype=np.int32)
            self._column[list(self.values)] = [self._numbers[each] for each in self.values.values()]
            self._ordered = None
        return self._numbers

    def _in_order(self, count: int) -> tuple[list[int], list[int]]:
        numbers = self._numbered(count)
        if self._ordered is None:
            amounts = ((whole_number(each), number) for each, number in numbers.items())
            ordered = sorted((amount, number) for amount, number in amounts if amount is not None)
            self._ordered = [each for each, _ in ordered], [number for _, number in ordered]
        return self._ordered


class NodeLabels:
    """The labels of the nodes, by key and slot."""

    def __init__(self) -> None:
        self._labels: dict[str, _Key] = {}
        self._names = _Key()
        self._nodes: dict[int, Node] = {}
        self.count = 0
        """How many slots there are."""

    def put(self, slot: int, node: Node | None) -> None:
        """The node in a slot has changed, or is gone."""
        old = self._nodes.pop(slot, None)
        before, now = _labels(old), _labels(node)
        for key in before.keys() - now.keys():
            self._labels[key].put(slot, None)
            if not self._labels[key].values:
                del self._labels[key]
        for key, value in now.items():
            if before.get(key) != value:
                self._labels.setdefault(key, _Key()).put(slot, value)
        if node is not None:
            self._nodes[slot] = node
        if (old is None) != (node is None) or (old and node and old.name != node.name):
            self._names.put(slot, None if node is None else node.name)

    def matching_any(self, terms: Iterable[Term]) -> Mask:
        """The slots whose nodes match one of these terms."""
        found = np.zeros(self.count, dtype=bool)
        for term in dict.fromkeys(terms):
            found |= self.matching(term)
        return found

    def matching(self, term: Term) -> Mask:
        """The slots whose nodes match a term; one without requirements matches none."""
        if not term.labels and not term.fields:
            return np.zeros(self.count, dtype=bool)
        found = np.ones(self.count, dtype=bool)
        for each in term.labels:
            found &= self._meeting(each, self._labels.get(each.key))
        for each in term.fields:
            found &= self._meeting(each, self._names if each.key == _NAME else None)
        return found

    def with_value(self, key: str, value: str) -> Mask:
        """The slots whose nodes have this label."""
        return self._meeting(Requirement(key, "In", (value,)), self._labels.get(key))

    def _meeting(self, requirement: Requirement, key: _Key | None) -> Mask:
        """As `requirement_matches`, for all nodes at once."""
        key = _NOWHERE if key is None else key
        match requirement.operator:
            case "In":
                return key.among(requirement.values, self.count)
            case "NotIn":
                return ~key.among(requirement.values, self.count)
            case "Exists":
                return key.present(self.count)
            case "DoesNotExist":
                return ~key.present(self.count)
            case "Gt" | "Lt" if requirement.values:
                bound = whole_number(requirement.values[0])
                if bound is not None:
                    above = requirement.operator == "Gt"
                    return key.compared(bound, above=above, count=self.count)
        return np.zeros(self.count, dtype=bool)


_NOWHERE = _Key()
"""A label that no node has."""


def _labels(node: Node | None) -> dict[str, str]:
    return {} if node is None else dict(node.labels)
