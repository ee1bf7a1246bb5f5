"""StatefulSets: pods with ordinals, created in order and deleted in the reverse order.

A pod that is lost comes back under its own name. An update replaces pods from the highest ordinal
down to the partition, each when all others are ready. Claims of pods are made, and stay.
"""

from http import HTTPStatus

from aliquot.dialects.claims import stateful_claims
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.dialects.workloads import ordinals, starts_in_order, stateful_pod
from aliquot.errors import InputError, RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import finished, ready
from aliquot.server.workloads.pod_groups import manifest_of
from aliquot.server.workloads.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker
from aliquot.server.workloads.revisions import HASH, Revision, Revisions

_SETS = "statefulsets.apps"


class StatefulSets:
    """Reconciles StatefulSets, by key."""

    def __init__(self, api: Api, owners: OwnerIndex, pod_maker: PodMaker) -> None:
        self._api, self._owners, self._pod_maker = api, owners, pod_maker
        self.worker = Worker(self._reconcile)
        self._kind, self._claim = api.kind("StatefulSet"), api.kind("PersistentVolumeClaim")
        self._revisions = Revisions(api, owners)
        api.store.listeners.append(self._on_change)
        for entry in api.store.all(_SETS):
            self.worker.enqueue(entry.key)

    def _on_change(self, change: Change) -> None:
        if change.storage == _SETS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == "pods":
            for owner in self._owners.owners_in(_SETS, change):
                self.worker.enqueue(owner)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_SETS, *key)
        if found is None:
            return None
        body = found.read()
        if found.deleting:
            return None
        newest = await self._revisions.current(body)
        present = self._present(body, newest)
        refused = await self._balance(body, newest, present)
        pods = self._pods(body)
        await self._revisions.delete_old(
            body, {newest.hash, present.hash, *(_hash(body, pod) for pod in pods.values())}
        )
        await self._write_status(key, body, newest, present)
        return RETRY_SECONDS if refused is not None else None

    def _present(self, body: Body, newest: Revision) -> Revision:
        """The revision from before a running update: pods below the partition are made from it."""
        named = (body.get("status") or {}).get("currentRevision")
        known = {each.name: each for each in self._revisions.all(body)}
        return known.get(named or "", newest)

    def _pods(self, body: Body) -> dict[int, Body]:
        """The pods by ordinal."""
        prefix, found = f"{body['metadata']['name']}-", {}
        for _, entry in self._owners.dependents(body["metadata"]["uid"], "pods"):
            ordinal = entry.name.removeprefix(prefix)
            if entry.name.startswith(prefix) and ordinal.isdecimal():
                found[int(ordinal)] = entry.read()
        return found

    async def _balance(
        self, body: Body, newest: Revision, present: Revision
    ) -> RefusalError | None:
        """Create, delete or replace what is next; the first refusal, if there is one."""
        in_order, wanted, pods = _starts_in_order(body), ordinals(body), self._pods(body)
        made = 0
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is None and made < CREATED_AT_ONCE:
                revision = self._revision_for(body, ordinal, newest, present)
                refused = await self._create(body, ordinal, revision)
                if refused is not None:
                    return refused
                made += 1
            elif pod is not None and finished(pod):
                await self._pod_maker.delete([pod], 1)
            if in_order and (pod is None or not _healthy(pod)):
                return None
        surplus = sorted((each for each in pods if each not in wanted), reverse=True)
        for ordinal in surplus[:1] if in_order else surplus:
            if "deletionTimestamp" not in pods[ordinal]["metadata"]:
                await self._pod_maker.delete([pods[ordinal]], 1)
        if not surplus and not made:
            await self._update(body, newest, pods)
        return None

    def _revision_for(
        self, body: Body, ordinal: int, newest: Revision, present: Revision
    ) -> Revision:
        below = ordinal < ordinals(body).start + _partition(body)
        return present if below and _rolls(body) else newest

    async def _create(self, body: Body, ordinal: int, revision: Revision) -> RefusalError | None:
        pod = stateful_pod(body, ordinal, revision.template)
        labels = {**(pod["metadata"].get("labels") or {}), HASH: revision.name}
        prefix = f"{body['metadata']['name']}-"
        pod["metadata"] = {**pod["metadata"], "generateName": prefix, "labels": labels}
        try:
            await self._make_claims(body, pod["metadata"]["name"])
        except RefusalError as refusal:
            return refusal
        return await self._pod_maker.create(body, [pod])

    async def _make_claims(self, body: Body, pod: str) -> None:
        namespace = body["metadata"]["namespace"]
        for claim in stateful_claims(body, pod):
            name = claim["metadata"]["name"]
            if self._api.store.get(self._claim.storage, namespace, name) is None:
                await self._api.create(self._claim, namespace, claim)

    async def _update(self, body: Body, newest: Revision, pods: dict[int, Body]) -> None:
        """Replace the highest pod of an older revision, unless another one is not ready yet."""
        if not _rolls(body):
            return
        wanted = ordinals(body)
        for ordinal in reversed(wanted):
            if ordinal < wanted.start + _partition(body):
                return
            pod = pods.get(ordinal)
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                return
            if _label(pod) != newest.name:
                await self._pod_maker.delete([pod], 1)
                return
            if not _healthy(pod):
                return

    async def _write_status(
        self, key: Key, body: Body, newest: Revision, present: Revision
    ) -> None:
        pods = list(self._pods(body).values())
        healthy = sum(_healthy(pod) for pod in pods)
        updated = sum(_label(pod) == newest.name for pod in pods)
        done = updated == len(pods) == len(ordinals(body)) == healthy
        current = newest if done else present
        figures = {
            "readyReplicas": healthy,
            "currentReplicas": sum(_label(pod) == current.name for pod in pods),
            "updatedReplicas": updated,
        }
        status: Body = {
            "observedGeneration": body["metadata"]["generation"],
            "replicas": len(pods),
            "availableReplicas": healthy,
            **{name: count for name, count in figures.items() if count},
            "currentRevision": current.name,
            "updateRevision": newest.name,
            "collisionCount": 0,
        }

        def edit(shown: Body) -> Body:
            shown["status"] = status
            return shown

        if status != body.get("status"):
            try:
                await self._api.change(self._kind, *key, edit, "status")
            except RefusalError as refusal:
                if refusal.code != HTTPStatus.NOT_FOUND:
                    raise


def _starts_in_order(body: Body) -> bool:
    try:
        group = group_name(manifest_of(body))
    except InputError:
        group = None
    return starts_in_order(body, group or "")


def _rolls(body: Body) -> bool:
    return (body["spec"].get("updateStrategy") or {}).get("type") != "OnDelete"


def _partition(body: Body) -> int:
    strategy = body["spec"].get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def _healthy(pod: Body) -> bool:
    return ready(pod) and not finished(pod) and "deletionTimestamp" not in pod["metadata"]


def _label(pod: Body) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH, ""))


def _hash(body: Body, pod: Body) -> str:
    return _label(pod).removeprefix(f"{body['metadata']['name']}-")
