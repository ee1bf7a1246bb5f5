"""What is wrong with the input, or worth a word: placed and worded the same way everywhere.

An error is what a simulation refuses to start on; a warning is what it starts in spite of. Whoever
looks for them goes on after each one; only those who need sound input raise the first error.
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
    """One thing about one object. Equal ones say the same, whenever they were found."""

    severity: Severity
    place: str
    """File and document."""
    object: str
    """`Pod team-a/train`, as far as it can be read."""
    field: str
    problem: str
    file: str = dataclasses.field(default="", compare=False)
    at: int = dataclasses.field(default=0, compare=False)
    """When it comes to be so."""

    def error(self) -> InputError:
        """The finding as an error to raise."""
        place = ": ".join(part for part in (self.place, self.object) if part)
        return InputError(place, self.field, self.problem)

    def __str__(self) -> str:
        when = f"at {seconds(self.at)}s, " if self.at else ""
        return f"{when}{self.error()}"


def refused(error: InputError, place: str, file: str = "") -> Finding:
    """An error met while reading the document at a place."""
    title = error.place.removeprefix(place).removeprefix(": ")
    return Finding("error", place, title, error.field, error.problem, file)


def list_names(names: Sequence[str]) -> str:
    """Names as a person would list them."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
