"""The importance order of pods: priority, then the older, then name.

Claims are tried in this order. Inside a quota it decides which pods are in-quota and, read
backwards, which over-quota pods are evicted first; there a policy may replace it by an `Order`
that its knob spells out.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from aliquot.engine.model.pod import Pod
from aliquot.errors import ArgumentError

Natural = tuple[str, str]
ImportanceKey = tuple[int, int, Natural]
"""Sorts the more important pod first. Ends in the full name, so that no two pods are equal."""

OrderKey = tuple[Any, ...]
"""A pod's place in the order of its quota; comparable only with keys of the same `Order`."""

_ORDER_WORDS = ("priority", "creation", "request", "name")
_DIGITS = re.compile(r"([0-9]+)")
_LONGEST_NUMBER = 20
"""Digits that numbers in names are padded to: those of 2**64, so that timestamps and hashes fit."""
_NAMES_KEPT = 4096
"""While its claims are made, a pod of a gang is put in order three times: more than a gang has."""


def importance(pod: Pod) -> ImportanceKey:
    """The pod's place in the order; smaller is more important."""
    return (-pod.priority, pod.created, natural(pod.path))


class Order:
    """An order of the pods of a quota, given as words; `-` before a word reverses it.

    `priority`: the higher first. `creation`: the older first. `request`: the smaller first, as the
    largest fraction of the quota's min that the pod takes in any resource. `name`: by namespace and
    name, which always comes last to break ties.
    """

    def __init__(self, *words: str) -> None:
        for word in words:
            if word.removeprefix("-") not in _ORDER_WORDS:
                known = ", ".join(_ORDER_WORDS)
                raise ArgumentError(f"over_quota_order: {word!r} is none of {known}")
        self._words = tuple((each.removeprefix("-"), -1 if each[0] == "-" else 1) for each in words)
        self.by_age = words[:2] == ("priority", "creation")
        """Does the name alone tell pods of one priority and age apart?"""
        self.by_request = any(word == "request" for word, _ in self._words)

    def key(self, pod: Pod, request: Fraction) -> OrderKey:
        """The pod's place; smaller is more important."""
        name, parts = natural(pod.path), list[Any]()
        for word, sign in self._words:
            match word:
                case "priority":
                    parts.append(-sign * pod.priority)
                case "creation":
                    parts.append(sign * pod.created)
                case "request":
                    parts.append(sign * request)
                case _:
                    parts.append(name if sign > 0 else Reversed(name))
        return (*parts, name)


class Reversed:
    """A name that sorts in reverse."""

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
"""The order of `importance`, as an `Order` of words."""


@lru_cache(maxsize=_NAMES_KEPT)
def natural(name: str) -> Natural:
    """Order names as people do: `pod-9` before `pod-10`."""
    parts = _DIGITS.split(name)
    for i in range(1, len(parts), 2):  # the numbers
        parts[i] = parts[i].zfill(_LONGEST_NUMBER)
    return "".join(parts), name
