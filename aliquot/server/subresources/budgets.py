"""PodDisruptionBudgets: how many of their pods may be disrupted now. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from aliquot.json import Body


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
    spec: Body, pods: Iterable[Body], replicas: Mapping[str, int], disrupted: Collection[str] = ()
) -> BudgetState:
    """The state of a budget over its pods.

    `replicas`: by uid, how many pods their owners want; `disrupted`: names of pods whose eviction
    was granted, which no longer count as healthy.
    """
    there = [pod for pod in pods if phase(pod) not in ("Succeeded", "Failed")]
    healthy = sum(
        ready(pod)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
        for pod in there
    )
    by_owner = sum(replicas[uid] for uid in {controller(pod) for pod in there} if uid in replicas)
    alone = sum(controller(pod) not in replicas for pod in there)
    wanted = by_owner + alone
    if (most := spec.get("maxUnavailable")) is not None:
        return BudgetState(wanted, max(wanted - _count(most, wanted), 0), healthy)
    least = spec.get("minAvailable")
    if isinstance(least, str) and least.endswith("%"):
        return BudgetState(wanted, _count(least, wanted), healthy)
    return BudgetState(len(there), _count(1 if least is None else least, len(there)), healthy)


def ready(pod: Body) -> bool:
    """Is a pod ready?"""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def phase(pod: Body) -> str:
    """The phase of a pod."""
    return str((pod.get("status") or {}).get("phase", ""))


def controller(body: Body) -> str:
    """The uid of the owner that controls an object; empty if none does."""
    for each in body["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return str(each["uid"])
    return ""


def _count(value: int | str, of: int) -> int:
    """A number, or a percentage of another one, rounded up."""
    if isinstance(value, int):
        return value
    return -(-int(value.rstrip("%")) * of // 100)
