"""Deployments: one ReplicaSet for each pod template; the newest grows as the others shrink."""

import copy
from http import HTTPStatus

from aliquot.dialects.core.amounts import share_of
from aliquot.dialects.core.manifest import owner_reference
from aliquot.dialects.workloads import replicas
from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.conditions import find, with_transition
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.workloads.revisions import template_hash

_DEPLOYMENTS, _SETS = "deployments.apps", "replicasets.apps"
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_HISTORY = 10
"""The default of revisionHistoryLimit in Kubernetes."""


class Deployments:
    """Reconciles Deployments, by key."""

    def __init__(self, api: Api, owners: OwnerIndex) -> None:
        self._api, self._owners = api, owners
        self.worker = Worker(self._reconcile)
        self._kind, self._set = api.kind("Deployment"), api.kind("ReplicaSet")
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_DEPLOYMENTS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _DEPLOYMENTS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == _SETS:
            for owner in self._owners.owners_in(_DEPLOYMENTS, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_DEPLOYMENTS, *key)
        if found is None or found.deleting:
            return None
        body = found.read()
        sets = [entry.read() for _, entry in self._owners.dependents(found.uid, _SETS)]
        sets = [each for each in sets if "deletionTimestamp" not in each["metadata"]]
        wanted = template_hash(body["spec"]["template"])
        newest = next((each for each in sets if _label(each) == wanted), None)
        others = [each for each in sets if each is not newest]
        paused = body["spec"].get("paused", False)
        if newest is None and not paused:
            newest = await self._create_replica_set(body, wanted, others)
        if newest is not None:
            await self._write_revision(body, newest, others)
            await self._balance(body, newest, others)
            await self._delete_old(body, others)
        await self._write_status(key, body, newest, others)
        return None

    async def _create_replica_set(self, body: Body, digest: str, others: list[Body]) -> Body:
        """Create the ReplicaSet of a new template."""
        template = copy.deepcopy(body["spec"]["template"])
        template_metadata = template.setdefault("metadata", {})
        template_metadata["labels"] = {
            **(template_metadata.get("labels") or {}),
            _HASH: digest,
        }
        selector = copy.deepcopy(body["spec"].get("selector") or {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH: digest}
        metadata = body["metadata"]
        replica_set: Body = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": dict(template_metadata["labels"]),
                "annotations": {_REVISION: str(1 + max(map(_revision, others), default=0))},
                "ownerReferences": [owner_reference(body)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        made = await self._api.create(self._set, metadata["namespace"], replica_set)
        return made.read()

    async def _write_revision(self, body: Body, newest: Body, others: list[Body]) -> None:
        """Write the revision: templates are numbered by use; a rollback gets a new number."""
        highest = max(map(_revision, others), default=0)
        number = str(max(_revision(newest), highest + 1))
        for kind, each in ((self._set, newest), (self._kind, body)):
            metadata = each["metadata"]
            if (metadata.get("annotations") or {}).get(_REVISION) == number:
                continue

            def edit(present: Body) -> Body:
                written = present["metadata"].get("annotations") or {}
                present["metadata"]["annotations"] = {**written, _REVISION: number}
                return present

            await self._api.change(kind, metadata["namespace"], metadata["name"], edit)

    async def _balance(self, body: Body, newest: Body, others: list[Body]) -> None:
        """Scale the newest up within maxSurge, and the others down within maxUnavailable."""
        wanted = replicas(body)
        surge, missing = _limits(body["spec"].get("strategy") or {}, wanted)
        old = sum(_desired(each) for each in others)
        if surge is None:
            await self._scale_down(others, old)
            old_pods_left = any((each.get("status") or {}).get("replicas", 0) for each in others)
            await self._scale(newest, _desired(newest) if old_pods_left else wanted)
            return
        room = max(wanted + surge - old, 0)
        await self._scale(newest, min(wanted, max(room, min(_desired(newest), wanted))))
        ready = sum(_ready(each) for each in (newest, *others))
        unready_new = max(_desired(newest) - _ready(newest), 0)
        removable = _desired(newest) + old - (wanted - missing) - unready_new
        unready_old = sum(max(_desired(each) - _ready(each), 0) for each in others)
        await self._scale_down(
            others, max(min(removable, old), min(unready_old, old)) if ready else old
        )

    async def _scale_down(self, others: list[Body], count: int) -> None:
        for each in sorted(others, key=_ready):
            less = min(_desired(each), max(count, 0))
            count -= less
            await self._scale(each, _desired(each) - less)

    async def _scale(self, replica_set: Body, count: int) -> None:
        if _desired(replica_set) == count:
            return
        metadata = replica_set["metadata"]

        def edit(present: Body) -> Body:
            present["spec"]["replicas"] = count
            return present

        await self._api.change(self._set, metadata["namespace"], metadata["name"], edit)
        replica_set["spec"]["replicas"] = count

    async def _delete_old(self, body: Body, others: list[Body]) -> None:
        """Delete old ReplicaSets without pods beyond revisionHistoryLimit."""
        limit = body["spec"].get("revisionHistoryLimit", _HISTORY)
        idle = [
            each
            for each in sorted(others, key=_revision)
            if not _desired(each) and not (each.get("status") or {}).get("replicas")
        ]
        for each in idle[: max(len(idle) - limit, 0)]:
            metadata = each["metadata"]
            try:
                await self._api.delete(
                    self._set, metadata["namespace"], metadata["name"], DeleteOptions()
                )
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise

    async def _write_status(
        self, key: Key, body: Body, newest: Body | None, others: list[Body]
    ) -> None:
        sets = [each for each in (newest, *others) if each is not None]
        statuses = [each.get("status") or {} for each in sets]
        wanted = replicas(body)
        total = sum(each.get("replicas", 0) for each in statuses)
        ready = sum(each.get("readyReplicas", 0) for each in statuses)
        new = 0 if newest is None else (newest.get("status") or {}).get("replicas", 0)
        figures = {
            "replicas": total,
            "updatedReplicas": new,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(wanted - ready, 0),
        }
        status: Body = {name: count for name, count in figures.items() if count}
        status["observedGeneration"] = body["metadata"]["generation"]
        _, missing = _limits(body["spec"].get("strategy") or {}, wanted)
        conditions = [
            _available(ready >= wanted - missing),
            _progressing(new >= wanted and ready >= wanted and total == new, newest),
        ]
        before = body.get("status") or {}
        status["conditions"] = [_with_times(each, before) for each in conditions]

        def edit(present: Body) -> Body:
            present["status"] = status
            return present

        if status != before:
            await self._api.change(self._kind, *key, edit, "status")


def _available(enough: bool) -> Body:
    if enough:
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        reason = "MinimumReplicasUnavailable"
        message = "Deployment does not have minimum availability."
    return {"type": "Available", "status": str(enough), "reason": reason, "message": message}


def _progressing(done: bool, newest: Body | None) -> Body:
    name = "" if newest is None else newest["metadata"]["name"]
    reason = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
    what = "has successfully progressed" if done else "is progressing"
    message = f'ReplicaSet "{name}" {what}.'
    return {"type": "Progressing", "status": "True", "reason": reason, "message": message}


def _with_times(condition: Body, before: Body) -> Body:
    """The condition with its transition and update times."""
    old = find(before, condition["type"]) or {}
    same = all(old.get(key) == value for key, value in condition.items())
    updated = old["lastUpdateTime"] if same else timestamp()
    return {**with_transition(condition, before), "lastUpdateTime": updated}


def _limits(strategy: Body, wanted: int) -> tuple[int | None, int]:
    """The maxSurge and maxUnavailable in pods; a surge of None: Recreate, old pods go first."""
    if strategy.get("type") == "Recreate":
        return None, wanted
    rolling = strategy.get("rollingUpdate") or {}
    surge = share_of(rolling.get("maxSurge", "25%"), wanted)
    missing = share_of(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, missing if surge or missing else 1


def _label(replica_set: Body) -> str:
    return str((replica_set["metadata"].get("labels") or {}).get(_HASH, ""))


def _revision(replica_set: Body) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(_REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _desired(replica_set: Body) -> int:
    return int(replica_set["spec"].get("replicas", 0))


def _ready(replica_set: Body) -> int:
    return int((replica_set.get("status") or {}).get("readyReplicas", 0))
