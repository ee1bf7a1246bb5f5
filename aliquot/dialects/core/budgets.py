"""PodDisruptionBudgets: how many of the selected pods may be evicted at a time.

The number is the disruption controller's, from the budget's status. Where there is no status, as in
a simulation, it is computed here from the pods.
"""

from collections.abc import Sequence

from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import BudgetSpec, BudgetStatus, BudgetWire, LabelSelector
from aliquot.engine import Budget, Pod, Requirement, requirement_matches

_OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


def budget(manifest: Manifest, running: Sequence[Pod] = (), waiting: Sequence[Pod] = ()) -> Budget:
    """The budget by its status; without one, by the pods that are `running` and `waiting`."""
    content = manifest.content
    assert isinstance(content, BudgetWire)
    spec, status = content.spec or BudgetSpec(), content.status or BudgetStatus()
    selector = _selector(spec.selector or LabelSelector(), manifest)
    allowed = status.disruptions_allowed
    if allowed is None:
        healthy = sum(_matches(selector, pod, manifest.namespace) for pod in running)
        missing = sum(_matches(selector, pod, manifest.namespace) for pod in waiting)
        allowed = _allowed(spec, healthy, healthy + missing, manifest)
    return Budget(
        manifest.namespace,
        manifest.name,
        allowed,
        selector,
        frozenset(status.disrupted_pods or ()),
    )


def has_status(manifest: Manifest) -> bool:
    """Has the disruption controller written how many disruptions it allows?"""
    content = manifest.content
    assert isinstance(content, BudgetWire)
    return content.status is not None and content.status.disruptions_allowed is not None


def _selector(selector: LabelSelector, manifest: Manifest) -> tuple[Requirement, ...]:
    exact = text_map(selector.match_labels, manifest, "spec.selector.matchLabels")
    requirements = [Requirement(key, "In", (value,)) for key, value in sorted(exact.items())]
    for each in selector.match_expressions or []:
        if each.operator not in _OPERATORS:
            known = ", ".join(sorted(_OPERATORS))
            problem = f"operator {each.operator!r} is none of {known}"
            raise manifest.error("spec.selector.matchExpressions", problem)
        requirements.append(Requirement(each.key, each.operator, tuple(each.values or ())))
    return tuple(requirements)


def _matches(selector: tuple[Requirement, ...], pod: Pod, namespace: str) -> bool:
    labels = dict(pod.labels)
    comparable = bool(labels) and bool(selector) and pod.namespace == namespace
    return comparable and all(requirement_matches(each, labels) for each in selector)


def _allowed(spec: BudgetSpec, healthy: int, expected: int, manifest: Manifest) -> int:
    """What the disruption controller would allow, with `expected` pods that should run."""
    needed = 0
    if spec.max_unavailable is not None:
        needed = expected - _count(spec.max_unavailable, expected, manifest, "spec.maxUnavailable")
    elif spec.min_available is not None:
        needed = _count(spec.min_available, expected, manifest, "spec.minAvailable")
    return min(max(healthy - needed, 0), healthy)


def _count(value: int | str, of: int, manifest: Manifest, field: str) -> int:
    """A number, or a percentage of a number rounded up, as in Kubernetes."""
    if isinstance(value, int) and value >= 0:
        return value
    value = str(value)
    digits = value.removesuffix("%")
    if not value.endswith("%") or not digits.isdecimal() or len(digits) > 3:
        raise manifest.error(field, f"{value!r} is neither a number nor a percentage")
    return -(-int(digits) * of // 100)
