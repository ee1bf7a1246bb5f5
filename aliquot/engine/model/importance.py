"""Who is more important: priority, then older, then name.

That decides who starts first. Which pods of a quota count as in-quota, and, read backwards, which
of them give back first, goes by the same order, or by the one that a policy's knob spells out.
"""

import re
from fractions import Fraction
from typing import Any

from aliquot.engine.model.pod import Pod

Natural = tuple[str, str]
ImportanceKey = tuple[int, int, Natural]
"""Sorts the more important first. Ends in the whole name, so that no two pods are equal."""

OrderKey = tuple[Any, ...]
"""A place in a quota's own order of importance; of one `Order`, to be compared with its like."""

_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 20


def importance(pod: Pod) -> ImportanceKey:
    """The pod's place in the order; smaller is more important."""
    return (-pod.priority, pod.created, natural(pod.path))


class Order:
    """An order of the pods of a quota, spelled in words; `-` before one reverses it.

    `priority`: the higher first. `creation`: the older. `request`: the smaller, as the largest part
    of the quota's min that the pod takes in any resource. `name`: by namespace and name, which in
    any case comes last.
    """

    def __init__(self, *words: str) -> None:
        self._words = words
        self.by_request = any(word.removeprefix("-") == "request" for word in words)

    def key(self, pod: Pod, request: Fraction) -> OrderKey:
        """The pod's place; smaller is more important."""
        places: dict[str, Any] = {
            "priority": -pod.priority,
            "creation": pod.created,
            "request": request,
        }
        parts: list[Any] = []
        for word in self._words:
            kind = word.removeprefix("-")
            sign = -1 if word != kind else 1
            if kind == "name":
                parts.append(natural(pod.path) if sign > 0 else Reversed(natural(pod.path)))
            else:
                parts.append(sign * places[kind])
        return (*parts, natural(pod.path))


class Reversed:
    """A name that comes before those which it would come after."""

    __slots__ = ("name",)

    def __init__(self, name: Natural) -> None:
        self.name = name

    def __lt__(self, other: "Reversed") -> bool:
        return other.name < self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


IMPORTANCE = Order("priority", "creation", "name")


def natural(name: str) -> Natural:
    """Order names as people do: `pod-9` before `pod-10`."""
    return _DIGITS.sub(lambda digits: digits[0].zfill(_LONGEST_NUMBER), name), name
