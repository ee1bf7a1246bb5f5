"""PodDisruptionBudgets: their status, updated whenever their pods or owners change."""

from datetime import UTC, datetime, timedelta

from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.conditions import with_transition
from aliquot.server.controllers.worker import Worker
from aliquot.server.rules.metadata import timestamp
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import budget_state, controller

_BUDGETS = "poddisruptionbudgets.policy"
_DISRUPTED_SECONDS = 120
"""How long an evicted pod counts before its deletion begins; as in kube-controller-manager."""
_OWNERS = ("replicasets.apps", "deployments.apps")


class Budgets:
    """Reconciles budgets, by key."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self.worker = Worker(self._reconcile)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_BUDGETS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _BUDGETS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == "pods" or change.storage in _OWNERS:
            for entry in self._api.store.all(_BUDGETS, change.entry.namespace):
                self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> float | None:
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
        disrupted = _disrupted(body.get("status") or {}, pods)
        state = budget_state(body["spec"], pods, self._replicas(pods), disrupted)
        status: Body = {
            "observedGeneration": body["metadata"].get("generation", 0),
            "currentHealthy": state.healthy,
            "desiredHealthy": state.desired,
            "disruptionsAllowed": state.allowed,
            "expectedPods": state.expected,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        status["conditions"] = [_condition(state.allowed, body.get("status") or {}, status)]
        if status != body.get("status"):

            def edit(present: Body) -> Body:
                present["status"] = status
                return present

            kind = self._api.kind("PodDisruptionBudget")
            await self._api.change(kind, *key, edit, "status")
        return _DISRUPTED_SECONDS if disrupted else None

    def _replicas(self, pods: list[Body]) -> dict[str, int]:
        """By uid, the replicas that the owners of these pods want."""
        found: dict[str, int] = {}
        for uid in {controller(pod) for pod in pods} - {""}:
            owner = self._owners.get(uid)
            if owner is not None:
                spec = owner.read().get("spec") or {}
                if "replicas" in spec:
                    found[uid] = spec["replicas"]
        return found


def _disrupted(status: Body, pods: list[Body]) -> dict[str, str]:
    """The pods whose eviction was granted but whose deletion has not begun, and since when."""
    present = {
        pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    }
    oldest = timestamp(datetime.now(UTC) - timedelta(seconds=_DISRUPTED_SECONDS))
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
    return with_transition(condition, before)
