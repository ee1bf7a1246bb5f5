"""DaemonSets: a pod on every node that matches; they follow the nodes.

A pod is pinned to its node by affinity, and the scheduler binds it. An update replaces as many pods
at a time as maxUnavailable says; maxSurge is not acted on.
"""

from collections import defaultdict

from aliquot.dialects.core.amounts import share_of
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import read
from aliquot.dialects.daemon_sets import (
    Placement,
    constraints,
    daemon_pod,
    node_of,
    placement,
    readable_node,
)
from aliquot.engine import Node
from aliquot.errors import InputError, RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers.worker import Worker
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.owners import OwnerIndex
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import finished, ready
from aliquot.server.workloads.pod_maker import CREATED_AT_ONCE, RETRY_SECONDS, PodMaker
from aliquot.server.workloads.revisions import HASH, Revision, Revisions

_SETS = "daemonsets.apps"


class DaemonSets:
    """Reconciles DaemonSets, by key."""

    def __init__(self, api: Api, owners: OwnerIndex, pod_maker: PodMaker) -> None:
        self._api, self._owners, self._pod_maker = api, owners, pod_maker
        self.worker = Worker(self._reconcile)
        self._kind = api.kind("DaemonSet")
        self._revisions = Revisions(api, owners)
        self._nodes: dict[str, Node] = {}
        for entry in api.store.all("nodes"):
            self._track(entry)
        api.store.listeners.append(self._on_change)
        self._enqueue_all()

    def _on_change(self, change: Change) -> None:
        if change.storage == _SETS:
            self.worker.enqueue(change.entry.key)
        elif change.storage == "nodes":
            before = self._nodes.pop(change.entry.name, None)
            if change.type != "DELETED":
                self._track(change.entry)
            if self._nodes.get(change.entry.name) != before:
                self._enqueue_all()
        elif change.storage == "pods":
            for owner in self._owners.owners_in(_SETS, change):
                self.worker.enqueue(owner)

    def _track(self, entry: Entry) -> None:
        try:
            manifest = read(Document("", entry.read()))
        except InputError:
            return
        node = readable_node(manifest) if manifest is not None else None
        if node is not None:
            self._nodes[entry.name] = node

    def _enqueue_all(self) -> None:
        for entry in self._api.store.all(_SETS):
            self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get(_SETS, *key)
        if found is None or found.deleting:
            return None
        body = found.read()
        newest = await self._revisions.current(body)
        places, refused = self._places(body), None
        pods = self._pods(body)
        await self._delete_misplaced(pods, places)
        missing = [name for name, place in places.items() if place.starts and not pods.get(name)]
        refused = await self._create(body, newest, missing[:CREATED_AT_ONCE])
        if refused is None and not missing:
            await self._update(body, newest, pods, places)
        pods = self._pods(body)
        used = {_label(pod) for of_node in pods.values() for pod in of_node}
        await self._revisions.delete_old(body, {newest.hash, *used})
        await self._write_status(key, body, newest, places)
        if refused is not None:
            return RETRY_SECONDS
        return 0 if len(missing) > CREATED_AT_ONCE else None

    def _places(self, body: Body) -> dict[str, Placement]:
        where = constraints(body)
        if where is None:
            return {}
        return {name: placement(where, node) for name, node in sorted(self._nodes.items())}

    def _pods(self, body: Body) -> dict[str, list[Body]]:
        """The pods by node; those that have no node any more under an empty name."""
        found: dict[str, list[Body]] = defaultdict(list)
        for _, entry in self._owners.dependents(body["metadata"]["uid"], "pods"):
            pod = entry.read()
            found[node_of(pod)].append(pod)
        return found

    async def _delete_misplaced(
        self, pods: dict[str, list[Body]], places: dict[str, Placement]
    ) -> None:
        """Delete pods that have ended, those of nodes that no longer match, and second ones."""
        for node, of_node in pods.items():
            place, kept = places.get(node), 0
            for pod in sorted(of_node, key=lambda each: str(each["metadata"]["creationTimestamp"])):
                if "deletionTimestamp" in pod["metadata"]:
                    continue
                if place is None or not place.stays or finished(pod) or kept:
                    await self._pod_maker.delete([pod], 1)
                else:
                    kept += 1

    async def _create(self, body: Body, newest: Revision, nodes: list[str]) -> RefusalError | None:
        prefix, made = f"{body['metadata']['name']}-", []
        for node in nodes:
            pod = daemon_pod(body, node, generateName=prefix)
            labels = {**(pod["metadata"].get("labels") or {}), HASH: newest.hash}
            made.append({**pod, "metadata": {**pod["metadata"], "labels": labels}})
        return await self._pod_maker.create(body, made)

    async def _update(
        self,
        body: Body,
        newest: Revision,
        pods: dict[str, list[Body]],
        places: dict[str, Placement],
    ) -> None:
        """Delete pods of older revisions: those that are not ready, then within maxUnavailable."""
        strategy = body["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        wanted = [name for name, place in places.items() if place.starts]
        most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        room = max(share_of(most, len(wanted)), 1)
        old: list[Body] = []
        for name in wanted:
            of_node = [pod for pod in pods.get(name, ()) if _serves(pod)]
            if not of_node:
                room -= 1
            old += [pod for pod in pods.get(name, ()) if _label(pod) != newest.hash]
        old = [pod for pod in old if "deletionTimestamp" not in pod["metadata"]]
        idle = [pod for pod in old if not _serves(pod)]
        serving = [pod for pod in old if _serves(pod)]
        await self._pod_maker.delete(idle, len(idle))
        await self._pod_maker.delete(serving, room)

    async def _write_status(
        self, key: Key, body: Body, newest: Revision, places: dict[str, Placement]
    ) -> None:
        pods = self._pods(body)
        wanted = {name for name, place in places.items() if place.starts}
        there = {name: pods[name] for name in wanted if pods.get(name)}
        serving = sum(any(map(_serves, of_node)) for of_node in there.values())
        updated = sum(any(_label(pod) == newest.hash for pod in each) for each in there.values())
        misplaced = sum(bool(of_node) for name, of_node in pods.items() if name not in wanted)
        status: Body = {
            "currentNumberScheduled": len(there),
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": len(wanted),
            "numberReady": serving,
            "observedGeneration": body["metadata"]["generation"],
        }
        more = {
            "updatedNumberScheduled": updated,
            "numberAvailable": serving,
            "numberUnavailable": len(wanted) - serving,
        }
        status |= {name: count for name, count in more.items() if count}

        def edit(shown: Body) -> Body:
            shown["status"] = status
            return shown

        if status != body.get("status"):
            await self._api.change(self._kind, *key, edit, "status")


def _serves(pod: Body) -> bool:
    return ready(pod) and not finished(pod) and "deletionTimestamp" not in pod["metadata"]


def _label(pod: Body) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH, ""))
