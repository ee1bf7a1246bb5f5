"""Reads fields of a job's spec, of which no struct is made: numbers, records and lists by path."""

from collections.abc import Callable
from typing import Any

from aliquot.dialects.core.objects import MOST_PODS
from aliquot.json import Body

Steps = tuple[str | int, ...]
"""A path within an object."""
Refuse = Callable[[str, str], None]
"""Notes what is wrong with a field."""


class Fields:
    """A record within a job, and the path that leads to it."""

    def __init__(self, refuse: Refuse, body: Any, at: Steps) -> None:
        self._refuse = refuse
        self._at = at
        self.body: Body = self._checked(body, dict, "an object", ()) or {}

    def record(self, *names: str) -> "Fields":
        """The record that these fields lead to; an empty one if it is not there."""
        found: Any = self
        for name in names:
            found = Fields(self._refuse, found.body.get(name), (*found._at, name))
        assert isinstance(found, Fields)
        return found

    def records(self, name: str) -> "list[Fields]":
        """The records of a list."""
        found = self._checked(self.body.get(name), list, "a list", (name,)) or []
        return [Fields(self._refuse, each, (*self._at, name, i)) for i, each in enumerate(found)]

    def named(self, name: str) -> "dict[str, Fields]":
        """The records of a map, by key."""
        record = self.record(name)
        return {key: record.record(key) for key, value in record.body.items() if value is not None}

    def number(self, name: str, default: int, least: int = 0) -> int:
        """A number of pods."""
        found = self.written(name, least)
        return default if found is None else found

    def written(self, name: str, least: int = 0) -> int | None:
        """A number of pods; None if it is not there."""
        found = self.body.get(name)
        if found is None:
            return None
        if type(found) is not int or not least <= found <= MOST_PODS:
            problem = f"{found!r} is no whole number between {least} and {MOST_PODS}"
            self._refuse(self.path(name), problem)
            return None
        return found

    def text(self, name: str) -> str:
        """A word; empty if it is not there."""
        return self._checked(self.body.get(name), str, "text", (name,)) or ""

    def is_true(self, name: str) -> bool:
        """Is a switch on?"""
        return self._checked(self.body.get(name), bool, "true or false", (name,)) is True

    @property
    def steps(self) -> Steps:
        """The path of the record."""
        return self._at

    def path(self, *more: str) -> str:
        """The field, as messages name it."""
        return path((*self._at, *more))

    def _checked(self, value: Any, kind: type[Any], words: str, names: tuple[str, ...]) -> Any:
        if value is None or isinstance(value, kind):
            return value
        self._refuse(self.path(*names), f"must be {words}")
        return None


def path(steps: Steps) -> str:
    """A path as messages name it: `spec.workerGroupSpecs[0].template`."""
    words = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in steps)
    return "".join(words).removeprefix(".")
