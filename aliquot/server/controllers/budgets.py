"""Disruption budgets: their status, kept up to date with their pods."""

from datetime import UTC, datetime, timedelta

from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.rules.metadata import timestamp
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import Owned
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import controller, standing

_BUDGETS = "poddisruptionbudgets.policy"
_PATIENCE = 120
_OWNERS = ("replicasets.apps", "deployments.apps")


class Budgets:
    """Looks at budgets, by key."""

    def __init__(self, api: Api, owned: Owned) -> None:
        self._api, self._owned = api, owned
        self.worker = Worker(self._look)
        api.store.listeners.append(self._note)
        for entry in api.store.all(_BUDGETS):
            self.worker.add(entry.key)

    def _note(self, change: Change) -> None:
        if change.storage == _BUDGETS:
            self.worker.add(change.entry.key)
        elif change.storage == "pods" or change.storage in _OWNERS:
            for entry in self._api.store.all(_BUDGETS, change.entry.namespace):
                self.worker.add(entry.key)

    async def _look(self, key: Key) -> float | None:
        found = self._api.store.get(_BUDGETS, *key)
        if found is None:
            return None
        body = found.read()
        selector = Labels.of(body["spec"].get("selector"))
        pods = [
            entry.read()
            for entry in self._api.store.all("pods", key[0])
            if selector is not None and selector.match(entry.labels)
        ]
        leaving = _leaving(body.get("status") or {}, pods)
        now = standing(body["spec"], pods, self._replicas(pods), leaving)
        status: Body = {
            "observedGeneration": body["metadata"].get("generation", 0),
            "currentHealthy": now.healthy,
            "desiredHealthy": now.desired,
            "disruptionsAllowed": now.allowed,
            "expectedPods": now.expected,
        }
        if leaving:
            status["disruptedPods"] = leaving
        status["conditions"] = [_condition(now.allowed, body.get("status") or {}, status)]
        if status != body.get("status"):

            def edit(present: Body) -> Body:
                present["status"] = status
                return present

            kind = self._api.kind("PodDisruptionBudget")
            await self._api.change(kind, *key, edit, "status")
        return _PATIENCE if leaving else None

    def _replicas(self, pods: list[Body]) -> dict[str, int]:
        """How many pods the owners of these want, by uid; a Deployment speaks for its sets."""
        found: dict[str, int] = {}
        for uid in {controller(pod) for pod in pods} - {""}:
            owner = self._owned.owner(uid)
            if owner is not None:
                spec = owner.read().get("spec") or {}
                if "replicas" in spec:
                    found[uid] = spec["replicas"]
        return found


def _leaving(status: Body, pods: list[Body]) -> dict[str, str]:
    """Pods whose eviction was granted and has not begun, with the time when it was."""
    present = {
        pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    }
    oldest = timestamp(datetime.now(UTC) - timedelta(seconds=_PATIENCE))
    granted = (status.get("disruptedPods") or {}).items()
    return {name: since for name, since in granted if name in present and since > oldest}


def _condition(allowed: int, before: Body, status: Body) -> Body:
    enough = allowed > 0
    condition = {
        "type": "DisruptionAllowed",
        "status": str(enough),
        "reason": "SufficientPods" if enough else "InsufficientPods",
        "observedGeneration": status["observedGeneration"],
        "message": "",
    }
    for each in before.get("conditions") or ():
        if each.get("type") == "DisruptionAllowed" and each.get("status") == str(enough):
            return {**condition, "lastTransitionTime": each["lastTransitionTime"]}
    return {**condition, "lastTransitionTime": timestamp()}
