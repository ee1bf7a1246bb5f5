"""Policies: how gates, order and reclaim are decided. One file each, all registered here."""

from collections.abc import Callable

from aliquot.engine.config import Knobs
from aliquot.engine.policies.base import Policy
from aliquot.engine.policies.capacity import Capacity
from aliquot.engine.policies.fair import Fair
from aliquot.engine.policies.hierarchy import Hierarchy
from aliquot.engine.policies.queues import Queues

__all__ = ["POLICIES", "Policy"]

POLICIES: dict[str, Callable[[Knobs], Policy]] = {
    "capacity": Capacity,
    "fair": Fair,
    "hierarchy": Hierarchy,
    "queues": Queues,
}
