"""Policies: how gates, order and reclaim are decided. One file each, all registered here."""

from collections.abc import Callable, Iterator
from typing import Protocol

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.offer import Offer, Rights
from aliquot.engine.order import Order
from aliquot.engine.policies.capacity import Capacity
from aliquot.engine.policies.fair import Fair
from aliquot.engine.reasons import Refusal
from aliquot.engine.state import State
from aliquot.engine.summary import QuotaSummary


class Policy(Protocol):
    """What a policy decides."""

    order: Order
    """In which a quota's pods are counted as in-quota, and asked to give back."""

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """May the claim start, as far as quotas are concerned, on nodes of this class?

        `max` has been checked before. None as class: what holds before any node is considered.
        """
        ...

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the quotas before the gates let the claim pass."""
        ...

    def excess(self, state: State, quota: str) -> Rights:
        """What a quota uses, max aside, that it may not use any more: its bounds were lowered."""
        ...

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is the claim within what is guaranteed to it, so that no hold stands in its way?"""
        ...

    def hint(self, state: State, claim: Claim) -> str:
        """What else there is to say to a claim that found nobody to make way."""
        ...

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Add to the quotas' figures what this policy says of them."""
        ...

    def offers(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Offer]]:
        """Who may give back for the claim: ranks of offers, the best first."""
        ...


POLICIES: dict[str, Callable[[Knobs], Policy]] = {
    "capacity": Capacity,
    "fair": Fair,
}
