"""Policies: how gates, turns and reclaim are decided. One folder each, all registered here."""

from collections.abc import Callable
from dataclasses import dataclass

from aliquot.engine.model.importance import IMPORTANCE, Order
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.policies.capacity.policy import capacity
from aliquot.engine.policies.fair.policy import fair
from aliquot.engine.policies.hierarchy.policy import hierarchy
from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.queues.policy import queues
from aliquot.engine.state import State

__all__ = ["POLICIES", "Policy", "Registration"]


@dataclass(frozen=True, slots=True)
class Registration:
    """How a policy is built, and what the state must know before."""

    build: Callable[[State], Policy]
    order: Callable[[Knobs], Order] = lambda _: IMPORTANCE
    """The order of importance in which a quota's pods count as in-quota or over-quota."""
    spares_system: bool = False
    """Whether pods of system namespaces are never evicted, not only critical ones."""


POLICIES: dict[str, Registration] = {
    "capacity": Registration(capacity),
    "fair": Registration(fair, lambda knobs: Order(*knobs.fair.over_quota_order)),
    "hierarchy": Registration(hierarchy),
    "queues": Registration(queues, spares_system=True),
}
