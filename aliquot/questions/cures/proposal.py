"""A proposal: changes that might let a pod start; and a cure, one of which it is known."""

from dataclasses import dataclass
from typing import Any

from aliquot.questions.cures.changes import CONFIGURATION, Step

_HOWS = ("wait", "patch", "add", "delete")
"""The kinds of changes in the order in which cures that are otherwise alike are listed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes in the order in which they are made."""

    summary: str
    steps: tuple[Step, ...]
    lowers: bool = False
    """Does it lower what is asked for? Then it comes before bounds are raised to hold that."""

    remade: bool = False
    """Must the pod be made anew, because a server changes nothing of its spec?"""

    def followed_by(self, other: "Proposal") -> "Proposal":
        """Both, one after the other; of two patches of one object the second, which saw the first.

        A patch has the whole of each field that it sets, so that the later one wins.
        """
        steps = list(self.steps)
        for step in other.steps:
            same = [
                each
                for each in steps
                if each["how"] == step["how"] == "patch" and each["object"] == step["object"]
            ]
            for each in same:
                steps.remove(each)
                step = {**step, "patch": _merged(each["patch"], step["patch"])}
            steps.append(step)
        words = f"{self.summary}, and {other.summary}"
        return Proposal(
            *(words, tuple(steps)),
            lowers=self.lowers or other.lowers,
            remade=self.remade or other.remade,
        )


def _merged(first: object, second: object) -> object:
    """Two merge patches as one; what the second says counts."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    return {
        key: _merged(first.get(key), second[key]) if key in second else first[key]
        for key in {**first, **second}
    }


@dataclass(frozen=True, slots=True)
class Cure:
    """Changes that let the pod start, and the pods that are evicted then."""

    summary: str
    steps: tuple[Step, ...]
    evicts: tuple[str, ...]
    remade: bool = False

    def as_json(self) -> dict[str, Any]:
        """As the answer has it."""
        return {
            "summary": self.summary,
            "changes": list(self.steps),
            "evicts": list(self.evicts),
        }

    @property
    def order(self) -> tuple[object, ...]:
        """The cure with the smallest comes first."""
        hows = sorted(_HOWS.index(step["how"]) for step in self.steps)
        is_knob = any(_is_knob(step) for step in self.steps)
        return len(self.steps), len(self.evicts), hows, is_knob, self.remade


def _is_knob(step: Step) -> bool:
    return step["object"] is not None and step["object"]["kind"] == CONFIGURATION
