"""Deployments: a ReplicaSet for every template they had, the newest scaled up as others go down."""

import copy
import hashlib
from http import HTTPStatus

import msgspec

from aliquot.dialects.core.documents import Body
from aliquot.errors import RefusalError
from aliquot.server.api import Api
from aliquot.server.controllers.pods import reference
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import Owned
from aliquot.server.storage.window import Change

_DEPLOYMENTS, _SETS = "deployments.apps", "replicasets.apps"
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_HISTORY = 10


class Deployments:
    """Looks at Deployments, by key."""

    def __init__(self, api: Api, owned: Owned) -> None:
        self._api, self._owned = api, owned
        self.worker = Worker(self._look)
        self._kind, self._set = api.kind("Deployment"), api.kind("ReplicaSet")
        api.store.listeners.append(self._note)
        for entry in api.store.all(_DEPLOYMENTS):
            self.worker.add(entry.key)

    def _note(self, change: Change) -> None:
        if change.storage == _DEPLOYMENTS:
            self.worker.add(change.entry.key)
        elif change.storage == _SETS:
            for uid in change.entry.owners:
                place = self._owned.place(uid)
                if place is not None and place[0] == _DEPLOYMENTS:
                    self.worker.add(place[1])

    async def _look(self, key: Key) -> float | None:
        found = self._api.store.get(_DEPLOYMENTS, *key)
        if found is None or found.deleting:
            return None
        body = found.read()
        sets = [entry.read() for _, entry in self._owned.of(found.uid, _SETS)]
        sets = [each for each in sets if "deletionTimestamp" not in each["metadata"]]
        mark = _mark(body["spec"]["template"])
        newest = next((each for each in sets if _label(each) == mark), None)
        others = [each for each in sets if each is not newest]
        paused = body["spec"].get("paused", False)
        if newest is None and not paused:
            newest = await self._begin(body, mark, others)
        if newest is not None:
            await self._number(body, newest, others)
            await self._balance(body, newest, others)
            await self._forget(body, others)
        await self._tell(key, body, newest, others)
        return None

    async def _begin(self, body: Body, mark: str, others: list[Body]) -> Body:
        """Make the ReplicaSet of a new template."""
        template = copy.deepcopy(body["spec"]["template"])
        metadata = template.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), _HASH: mark}
        selector = copy.deepcopy(body["spec"].get("selector") or {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH: mark}
        about = body["metadata"]
        replica_set: Body = {
            "metadata": {
                "name": f"{about['name']}-{mark}",
                "labels": dict(metadata["labels"]),
                "annotations": {_REVISION: str(1 + max(map(_revision, others), default=0))},
                "ownerReferences": [reference(body)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        made = await self._api.create(self._set, about["namespace"], replica_set)
        return made.read()

    async def _number(self, body: Body, newest: Body, others: list[Body]) -> None:
        """Templates are numbered in the order of their use; one that returns is numbered anew."""
        highest = max(map(_revision, others), default=0)
        number = str(max(_revision(newest), highest + 1))
        for kind, each in ((self._set, newest), (self._kind, body)):
            about = each["metadata"]
            if (about.get("annotations") or {}).get(_REVISION) == number:
                continue

            def edit(present: Body) -> Body:
                written = present["metadata"].get("annotations") or {}
                present["metadata"]["annotations"] = {**written, _REVISION: number}
                return present

            await self._api.change(kind, about["namespace"], about["name"], edit)

    async def _balance(self, body: Body, newest: Body, others: list[Body]) -> None:
        """Scale the newest up as far as may be, and the others down as far as they must stay."""
        wanted = body["spec"].get("replicas", 1)
        surge, missing = _steps(body["spec"].get("strategy") or {}, wanted)
        old = sum(_wants(each) for each in others)
        if surge is None:
            await self._scale_down(others, old)
            busy = any((each.get("status") or {}).get("replicas", 0) for each in others)
            await self._scale(newest, _wants(newest) if busy else wanted)
            return
        room = max(wanted + surge - old, 0)
        await self._scale(newest, min(wanted, max(room, min(_wants(newest), wanted))))
        able = sum(_able(each) for each in (newest, *others))
        unready_new = max(_wants(newest) - _able(newest), 0)
        spare = _wants(newest) + old - (wanted - missing) - unready_new
        unable = sum(max(_wants(each) - _able(each), 0) for each in others)
        await self._scale_down(others, max(min(spare, old), min(unable, old)) if able else old)

    async def _scale_down(self, others: list[Body], count: int) -> None:
        for each in sorted(others, key=_able):
            less = min(_wants(each), max(count, 0))
            count -= less
            await self._scale(each, _wants(each) - less)

    async def _scale(self, replica_set: Body, replicas: int) -> None:
        if _wants(replica_set) == replicas:
            return
        about = replica_set["metadata"]

        def edit(present: Body) -> Body:
            present["spec"]["replicas"] = replicas
            return present

        await self._api.change(self._set, about["namespace"], about["name"], edit)
        replica_set["spec"]["replicas"] = replicas

    async def _forget(self, body: Body, others: list[Body]) -> None:
        """Delete what is left of templates of long ago."""
        limit = body["spec"].get("revisionHistoryLimit", _HISTORY)
        idle = [
            each
            for each in sorted(others, key=_revision)
            if not _wants(each) and not (each.get("status") or {}).get("replicas")
        ]
        for each in idle[: max(len(idle) - limit, 0)]:
            about = each["metadata"]
            try:
                await self._api.delete(
                    self._set, about["namespace"], about["name"], DeleteOptions()
                )
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise

    async def _tell(self, key: Key, body: Body, newest: Body | None, others: list[Body]) -> None:
        sets = [each for each in (newest, *others) if each is not None]
        stands = [each.get("status") or {} for each in sets]
        wanted = body["spec"].get("replicas", 1)
        there = sum(each.get("replicas", 0) for each in stands)
        able = sum(each.get("readyReplicas", 0) for each in stands)
        new = 0 if newest is None else (newest.get("status") or {}).get("replicas", 0)
        figures = {
            "replicas": there,
            "updatedReplicas": new,
            "readyReplicas": able,
            "availableReplicas": able,
            "unavailableReplicas": max(wanted - able, 0),
        }
        status: Body = {name: count for name, count in figures.items() if count}
        status["observedGeneration"] = body["metadata"]["generation"]
        _, missing = _steps(body["spec"].get("strategy") or {}, wanted)
        conditions = [
            _available(able >= wanted - missing),
            _progressing(new >= wanted and able >= wanted and there == new, newest),
        ]
        before = body.get("status") or {}
        status["conditions"] = [_since(each, before) for each in conditions]

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


def _since(condition: Body, before: Body) -> Body:
    """The condition, with the time since when it is so."""
    now = timestamp()
    for each in before.get("conditions") or ():
        if each.get("type") == condition["type"]:
            changed = now if each["status"] != condition["status"] else each["lastTransitionTime"]
            same = all(each.get(key) == value for key, value in condition.items())
            updated = each["lastUpdateTime"] if same else now
            return {**condition, "lastTransitionTime": changed, "lastUpdateTime": updated}
    return {**condition, "lastTransitionTime": now, "lastUpdateTime": now}


def _steps(strategy: Body, wanted: int) -> tuple[int | None, int]:
    """How many pods may be too many and too few on the way; no surplus: all go before any come."""
    if strategy.get("type") == "Recreate":
        return None, wanted
    said = strategy.get("rollingUpdate") or {}
    surge = _count(said.get("maxSurge", "25%"), wanted, up=True)
    missing = _count(said.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, missing if surge or missing else 1


def _count(value: int | str, of: int, up: bool) -> int:
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%")) * of
    return -(-percent // 100) if up else percent // 100


def _mark(template: Body) -> str:
    """A short word that differs where templates do."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def _label(replica_set: Body) -> str:
    return str((replica_set["metadata"].get("labels") or {}).get(_HASH, ""))


def _revision(replica_set: Body) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(_REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _wants(replica_set: Body) -> int:
    return int(replica_set["spec"].get("replicas", 0))


def _able(replica_set: Body) -> int:
    return int((replica_set.get("status") or {}).get("readyReplicas", 0))
