"""Policies: how gates, order and reclaim are decided. One package each, all registered here."""

from collections.abc import Callable

from aliquot.engine.model.knobs import Knobs
from aliquot.engine.policies.capacity.policy import Capacity
from aliquot.engine.policies.fair.policy import Fair
from aliquot.engine.policies.hierarchy.policy import Hierarchy
from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.queues.policy import Queues

__all__ = ["POLICIES", "Policy"]

POLICIES: dict[str, Callable[[Knobs], Policy]] = {
    "capacity": Capacity,
    "fair": Fair,
    "hierarchy": Hierarchy,
    "queues": Queues,
}
