"""The eviction subresource: a deletion that a PodDisruptionBudget may refuse for now."""

from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.http.options import DeleteOptions, delete_options
from aliquot.server.http.refusals import bad_request, created, internal
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp
from aliquot.server.selectors.selectors import Labels
from aliquot.server.subresources.budgets import finished, phase, ready

_BUDGETS = "poddisruptionbudgets.policy"
_MANY = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


async def evict(
    api: Api, kind: Kind, namespace: str, name: str, body: Any, dry_run: bool = False
) -> Body:
    """Delete a pod, if its PodDisruptionBudget allows it."""
    options = _options(name, body, dry_run)
    found = api.find(kind, namespace, name)
    pod = found.read()
    unprotected = found.deleting or phase(pod) == "Pending" or finished(pod)
    if not unprotected:
        _charge(api, pod, bool(options.dry_run))
    await api.delete(kind, namespace, name, options)
    return created()


def _options(name: str, body: Any, dry_run: bool) -> DeleteOptions:
    if not isinstance(body, dict):
        raise bad_request("an Eviction is expected")
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict) or metadata.get("name", name) not in (name, ""):
        raise bad_request("name in URL does not match name in Eviction object")
    given = body.get("deleteOptions") or {}
    options = delete_options({}, {**given} if isinstance(given, dict) else given)
    return msgspec.structs.replace(options, dry_run=["All"]) if dry_run else options


def _charge(api: Api, pod: Body, dry_run: bool) -> None:
    """Take one disruption from the pod's budget, or refuse; without awaiting in between."""
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels")
    found = [
        budget
        for each in api.store.all(_BUDGETS, namespace)
        if (selector := Labels.of((budget := each.read())["spec"].get("selector"))) is not None
        and selector.match(labels)
    ]
    if not found:
        return
    if len(found) > 1:
        raise internal(_MANY)
    budget, status = found[0], found[0].setdefault("status", {})
    if not ready(pod) and _may_evict_unready(budget):
        return
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        name = budget["metadata"]["name"]
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(message, why, 10)
    if status.get("disruptionsAllowed", 0) <= 0:
        why = (
            f"The disruption budget {budget['metadata']['name']} needs "
            f"{status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise _too_many(message, why, 0)
    if not dry_run:
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = timestamp()
        api.store.put(_BUDGETS, budget)


def _may_evict_unready(budget: Body) -> bool:
    """May a pod that is not ready be evicted, whatever disruptionsAllowed says?"""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _too_many(message: str, why: str, seconds: int) -> RefusalError:
    details: Body = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return RefusalError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message, details)
