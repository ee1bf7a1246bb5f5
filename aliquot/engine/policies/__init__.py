"""Policies: how gates, order and reclaim are decided. One file each, all registered here."""

from collections.abc import Callable
from typing import Protocol

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.policies.capacity import Capacity
from aliquot.engine.reasons import Refusal
from aliquot.engine.state import State


class Policy(Protocol):
    """What a policy decides."""

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """May the claim start, as far as quotas are concerned, on nodes of this class?

        `max` has been checked before. None as class: what holds before any node is considered.
        """
        ...


POLICIES: dict[str, Callable[[Knobs], Policy]] = {
    "capacity": Capacity,
}
