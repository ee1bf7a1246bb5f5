"""PodDisruptionBudgets: how many of the selected pods may be evicted at a time.

The number is the disruption controller's, from the budget's status. Where there is no status, as in
a simulation, it is computed here from the pods. The embedded API server, whose disruption
controller writes the status, asks `budget_state` as well.
"""

from dataclasses import dataclass

from aliquot.dialects.core.amounts import share_of
from aliquot.dialects.core.label_selectors import canonical, requirements
from aliquot.dialects.core.manifest import Manifest, once
from aliquot.dialects.core.objects import BudgetSpec, BudgetStatus, BudgetWire, LabelSelector
from aliquot.engine import Budget, Requirement

IntOrPercent = int | str
"""A number of pods, or a percentage of them, such as `25%`."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The figures of a budget's status."""

    expected: int
    desired: int
    healthy: int

    @property
    def allowed(self) -> int:
        """How many pods may be disrupted."""
        return max(self.healthy - self.desired, 0) if self.expected else 0


def budget_state(
    min_available: IntOrPercent | None,
    max_unavailable: IntOrPercent | None,
    healthy: int,
    pods: int,
    replicas: int,
) -> BudgetState:
    """The state of a budget, by the rules of the disruption controller.

    `pods` are those that the budget selects and that have not ended, `replicas` how many their
    owners want. A budget with neither bound allows no disruption.
    """
    if max_unavailable is not None:
        desired = max(replicas - share_of(max_unavailable, replicas), 0)
        return BudgetState(replicas, desired, healthy)
    if min_available is None:
        return BudgetState(0, 0, healthy)
    if isinstance(min_available, int):
        return BudgetState(pods, min_available, healthy)
    return BudgetState(replicas, share_of(min_available, replicas), healthy)


def budget(manifest: Manifest, running: int = 0, waiting: int = 0) -> Budget:
    """The budget by its status; without one, by how many of its pods are `running`, and `waiting`.

    Pods that terminate count as neither.
    """
    content = manifest.content
    assert isinstance(content, BudgetWire)
    spec, status = content.spec or BudgetSpec(), content.status or BudgetStatus()
    allowed = status.disruptions_allowed
    if allowed is None:
        low, high, pods = spec.min_available, spec.max_unavailable, running + waiting
        _check_bound(low, manifest, "spec.minAvailable")
        _check_bound(high, manifest, "spec.maxUnavailable")
        allowed = budget_state(low, high, running, pods, pods).allowed
    return Budget(
        manifest.namespace,
        manifest.name,
        allowed,
        selector(manifest),
        frozenset(status.disrupted_pods or ()),
    )


def has_status(manifest: Manifest) -> bool:
    """Has the disruption controller written how many disruptions it allows?"""
    content = manifest.content
    assert isinstance(content, BudgetWire)
    return content.status is not None and content.status.disruptions_allowed is not None


@once
def selector(manifest: Manifest) -> tuple[Requirement, ...]:
    """The selector of a budget; without requirements it selects no pod."""
    content = manifest.content
    assert isinstance(content, BudgetWire)
    found = (content.spec or BudgetSpec()).selector or LabelSelector()
    return canonical(requirements(found, manifest, "spec.selector"))


def _check_bound(value: IntOrPercent | None, manifest: Manifest, field: str) -> None:
    """Refuse what is neither a number nor a percentage."""
    if value is None or (isinstance(value, int) and value >= 0):
        return
    text = str(value)
    digits = text.removesuffix("%")
    if not text.endswith("%") or not digits.isdecimal() or len(digits) > 3:
        manifest.refuse(field, f"{text!r} is neither a number nor a percentage")
