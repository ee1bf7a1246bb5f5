"""What keeps a pod from starting, as plain values: each gate, its place in the order, preemption.

The answer to `Engine.explain`. Words are for users; the figures beside them are exact, so that what
would help can be worked out from them and asked again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aliquot.engine.model.reasons import Refusal


@dataclass(frozen=True, slots=True)
class GateFigure:
    """What a gate compares in one resource: a bound, what is used of it, what the claim asks."""

    quota: str | None
    """The quota whose bound it is; None for what all quotas share."""
    resource: str
    bound: str
    """The word for the bound, such as `max` or `sum of min`."""
    most: int
    used: int
    """With what is held for other claims."""
    asks: int

    @property
    def beyond(self) -> int:
        """By how much the claim would exceed the bound; not above zero where it would not."""
        return self.used + self.asks - self.most


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """One gate: does the claim pass it, and with what numbers?"""

    gate: str
    passes: bool
    message: str
    figures: tuple[GateFigure, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """How many waiting pods are tried before a claim, and what they ask for."""

    ahead: int
    in_quota: int
    """Of them, those of its own quota."""
    asks: Mapping[str, int]
    """What all of them ask for, by resource."""
    asks_in_quota: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a waiting pod does or does not start, gate by gate."""

    refusal: Refusal | None
    """The engine's own verdict, in full; None if the claim can start now."""
    gates: tuple[GateAnswer, ...]
    place: Place
    victims: tuple[str, ...]
    """The uids of pods that could make way for it."""
    no_preemption: str
    """Why no pod makes way for it; empty where one does, or where none needs to."""
    pods: tuple[str, ...]
    """The uids of the pods that start together with it, its own included."""
