"""PodDisruptionBudgets: how many of their pods may be disrupted now. Pure."""

from collections.abc import Collection, Iterable, Mapping

from aliquot.dialects.core import budgets
from aliquot.dialects.core.budgets import BudgetState
from aliquot.dialects.core.pods import FINISHED
from aliquot.json import Body


def budget_state(
    spec: Body, pods: Iterable[Body], replicas: Mapping[str, int], disrupted: Collection[str] = ()
) -> BudgetState:
    """The state of a budget over its pods.

    `replicas`: by uid, how many pods their owners want; `disrupted`: names of pods whose eviction
    was granted, which no longer count as healthy.
    """
    running = [pod for pod in pods if not finished(pod)]
    healthy = sum(
        ready(pod)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
        for pod in running
    )
    by_owner = sum(replicas[uid] for uid in {controller(pod) for pod in running} if uid in replicas)
    without_owner = sum(controller(pod) not in replicas for pod in running)
    bounds = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return budgets.budget_state(*bounds, healthy, len(running), by_owner + without_owner)


def ready(pod: Body) -> bool:
    """Is a pod ready?"""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def phase(pod: Body) -> str:
    """The phase of a pod."""
    return str((pod.get("status") or {}).get("phase", ""))


def finished(pod: Body) -> bool:
    """Has a pod ended, so that it holds no resources any more?"""
    return phase(pod) in FINISHED


def controller(body: Body) -> str:
    """The uid of the owner that controls an object; empty if none does."""
    for each in body["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return str(each["uid"])
    return ""
