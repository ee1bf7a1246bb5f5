"""Findings: errors and warnings about the input, with place, object and field.

A simulation refuses to start on an error and starts in spite of warnings. A check collects all
findings and goes on after each; only a caller that needs valid input raises the first error.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aliquot.dialects.core.times import seconds
from aliquot.errors import InputError

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning about one object. Time and file do not count for equality."""

    severity: Severity
    place: str
    """File and document."""
    object: str
    """Kind and name, such as `Pod team-a/train`, as far as they can be read."""
    field: str
    problem: str
    file: str = dataclasses.field(default="", compare=False)
    at: int = dataclasses.field(default=0, compare=False)
    """The virtual time at which it first holds."""
    line: int = dataclasses.field(default=0, compare=False)
    """The line of the field in the file; 0 if it is not known."""
    path: tuple[str | int, ...] = dataclasses.field(default=(), compare=False)
    """Where in its file the document stands, if that is known when it is found."""

    def error(self) -> InputError:
        """The finding as an error to raise."""
        place = ": ".join(part for part in (self.place, self.object) if part)
        return InputError(place, self.field, self.problem)

    def __str__(self) -> str:
        when = f"at {seconds(self.at)}s, " if self.at else ""
        return f"{when}{self.error()}"


def refused(error: InputError, place: str, file: str = "") -> Finding:
    """The finding of an error that was raised while reading the document at a place."""
    title = error.place.removeprefix(place).removeprefix(": ")
    return Finding("error", place, title, error.field, error.problem, file)


def list_names(names: Sequence[str]) -> str:
    """Names for a message: at most three, then how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
