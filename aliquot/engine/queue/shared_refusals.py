"""Refusals that claims have in common: until something changes, what refuses one refuses its like.

Claims of one kind wait in one lane and are refused together. But each namespace and job that takes
turns has lanes of its own, and so has the core of each gang. Once a queue has all that it deserves,
very many of them are refused one after the other by the same share, with the same numbers, and no
claim has started in between. What was found out for the first of them is kept here for the others.

Only refusals by shares of claims that could use idle capacity are kept: what they say depends on
the books, on what the claim asks for, and on nothing else of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aliquot.engine.model.reasons import Refusal
from aliquot.engine.placement.best_node import Placement
from aliquot.engine.queue.claim import Claim

Likeness = tuple[object, ...]
"""Claims with the same differ only in namespace, gang, age and name, as far as shares go."""


@dataclass(slots=True)
class _Shared:
    """A refusal, and the same in full once it was told."""

    refusal: Refusal
    in_full: Refusal | None = None


class SharedRefusals:
    """The refusals since a claim has last started, by the likeness of the claims."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._known: dict[Likeness, _Shared] = {}
        self._last: tuple[Claim, Likeness | None] | None = None

    def clear(self) -> None:
        """Something has changed: each claim is to be tried by itself."""
        self._known.clear()
        self._last = None

    def of(self, claim: Claim) -> Refusal | None:
        """The refusal of a claim like this one, if there was one."""
        found = self._find(claim)
        return None if found is None else found.refusal

    def note(self, claim: Claim, refusal: Refusal) -> None:
        """A claim that could use idle capacity is refused by a share."""
        likeness = self._likeness(claim)
        if likeness is not None:
            self._known[likeness] = _Shared(refusal)

    def in_full(self, claim: Claim, refusal: Refusal, tell: Callable[[], Refusal]) -> Refusal:
        """The claim's refusal as `tell` words it, which is asked once for claims that are alike."""
        found = self._find(claim)
        if found is None or found.refusal is not refusal:
            return tell()
        if found.in_full is None:
            found.in_full = tell()
        return found.in_full

    def _find(self, claim: Claim) -> _Shared | None:
        if not self._known:
            return None
        likeness = self._likeness(claim)
        return None if likeness is None else self._known.get(likeness)

    def _likeness(self, claim: Claim) -> Likeness | None:
        """What the claim asks for and of which quota; None if it is like no other.

        The further pods of a gang do not matter if all are alike: none can replace another.
        """
        if self._last is not None and self._last[0] is claim:
            return self._last[1]
        *like, _ = claim.kind
        found = tuple(like) if self._is_plain(claim) else None
        self._last = claim, found
        return found

    def _is_plain(self, claim: Claim) -> bool:
        if claim.held or claim.missing or claim.parts or claim.joins or claim.topology is not None:
            return False
        asks = [*claim.asks, *map(self._placement.ask, claim.others)]
        return all(each is asks[0] for each in asks)
