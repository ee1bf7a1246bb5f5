"""The kubelets of simulated nodes: they renew leases, and start, complete and stop pods.

Only nodes with the annotation `sim.aliquot.dev/simulated` have one; other nodes are left alone.
"""

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus

from aliquot.dialects.core.times import duration
from aliquot.errors import InputError, RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.controllers import simulated_nodes
from aliquot.server.controllers.worker import Worker
from aliquot.server.http.options import DeleteOptions, Preconditions, WriteOptions
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.window import Change
from aliquot.server.subresources.budgets import phase
from aliquot.server.volumes.ephemeral_claims import claims_of
from aliquot.server.volumes.keys import CLAIMS

_LEASES = "kube-node-lease"
_WRITES = WriteOptions(manager="kubelet")
_RENEW_SECONDS = 10.0
"""Between two renewals of a node's lease, as a kubelet has it."""
_MOST_RENEWALS = 50
"""Leases renewed a second at most: with many nodes each is renewed less often."""
_START_SECONDS = 0.5
"""From bound to running: short, but long enough for a watch to see the pod pending."""
_VOLUME_SECONDS = 1.0
"""How often a pod that is bound before its claims are looks for them."""
_STOP_SECONDS = 1.0
"""From deletion to gone, within the grace period: short, but visible as Terminating."""


class Kubelets:
    """Reconciles the pods that are bound to simulated nodes, by key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.worker = Worker(self._reconcile)
        self._pod, self._node = api.kind("Pod"), api.kind("Node")
        self._simulated: set[str] = set()
        self._last_address = 0
        self._bound: dict[Key, float] = {}
        """When each pod was first seen bound, on the clock of the event loop."""
        for entry in api.store.all("nodes"):
            self._track_node(entry)
        for entry in api.store.all("pods"):
            self._track_pod(entry)
        api.store.listeners.append(self._on_change)

    async def heartbeats(self) -> None:
        """Renew the leases of all simulated nodes, until cancelled."""
        while True:
            names = sorted(self._simulated)
            every = max(_RENEW_SECONDS, len(names) / _MOST_RENEWALS)
            begin = asyncio.get_running_loop().time()
            for name in names:
                try:
                    await self._renew(name, every)
                except RefusalError as refusal:
                    if refusal.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                        raise
                await asyncio.sleep(0)
            took = asyncio.get_running_loop().time() - begin
            await asyncio.sleep(max(every - took, 1.0) if names else 1.0)

    def _on_change(self, change: Change) -> None:
        if change.storage == "nodes":
            if change.type == "DELETED":
                self._drop_node(change.entry.name)
            else:
                self._track_node(change.entry)
        elif change.storage == "pods":
            if change.type == "DELETED":
                self._bound.pop(change.entry.key, None)
            else:
                self._track_pod(change.entry)

    def _track_node(self, entry: Entry) -> None:
        if simulated_nodes.is_simulated(entry.read()):
            self._simulated.add(entry.name)
        else:
            self._simulated.discard(entry.name)

    def _drop_node(self, name: str) -> None:
        """A node was deleted: delete its pods."""
        if name in self._simulated:
            self._simulated.discard(name)
            for entry in self._api.store.all("pods"):
                if entry.selectable["spec"].get("nodeName") == name:
                    self.worker.enqueue(entry.key)

    def _track_pod(self, entry: Entry) -> None:
        if entry.selectable["spec"].get("nodeName") in self._simulated:
            self._bound.setdefault(entry.key, asyncio.get_running_loop().time())
            self.worker.enqueue(entry.key)

    async def _reconcile(self, key: Key) -> float | None:
        found = self._api.store.get("pods", *key)
        if found is None:
            return None
        pod = found.read()
        node = (pod.get("spec") or {}).get("nodeName")
        if node not in self._simulated:
            if node and key in self._bound:
                await self._remove(found, 0)
            return None
        if found.deleting:
            return await self._stop(found, pod)
        if phase(pod) == "Pending":
            return await self._start(key, pod)
        if phase(pod) == "Running":
            return await self._complete(key, pod)
        return None

    async def _start(self, key: Key, pod: Body) -> float | None:
        left = self._bound[key] + _START_SECONDS - asyncio.get_running_loop().time()
        if left > 0:
            return left
        if not self._has_volumes(pod):
            return _VOLUME_SECONDS
        self._last_address += 1
        one, two, three = (
            self._last_address >> 16 & 255,
            self._last_address >> 8 & 255,
            (self._last_address & 255),
        )
        status = simulated_nodes.started(pod, timestamp(), f"10.{one}.{two}.{three}")
        await self._write_status(key, pod, status)
        return None

    def _has_volumes(self, pod: Body) -> bool:
        """Are all claims of a pod bound?"""
        claims = (
            self._api.store.get(CLAIMS, pod["metadata"]["namespace"], name)
            for name in claims_of(pod)
        )
        return all(each is not None and phase(each.read()) == "Bound" for each in claims)

    async def _complete(self, key: Key, pod: Body) -> float | None:
        written = (pod["metadata"].get("annotations") or {}).get(simulated_nodes.DURATION)
        if written is None:
            return None
        try:
            seconds = duration(written, "", "") / 1e9
        except InputError:
            return None
        since = datetime.fromisoformat(pod["status"].get("startTime") or timestamp())
        left = seconds - (datetime.now(UTC) - since).total_seconds()
        if left > 0:
            return left
        await self._write_status(key, pod, simulated_nodes.ended(pod, timestamp()))
        return None

    async def _stop(self, found: Entry, pod: Body) -> float | None:
        """Remove a pod in deletion once it has stopped, within its grace period."""
        metadata = pod["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        until = datetime.fromisoformat(metadata["deletionTimestamp"])
        passed = grace - (until - datetime.now(UTC)).total_seconds()
        if passed < min(_STOP_SECONDS, grace):
            return float(min(_STOP_SECONDS, grace) - passed + 0.01)
        await self._remove(found, 0)
        return None

    async def _remove(self, found: Entry, grace: int) -> None:
        options = DeleteOptions(
            grace_period_seconds=grace, preconditions=Preconditions(uid=found.uid)
        )
        try:
            await self._api.delete(self._pod, found.namespace, found.name, options)
        except RefusalError as refusal:
            if refusal.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    async def _write_status(self, key: Key, pod: Body, status: Body) -> None:
        uid = pod["metadata"]["uid"]

        def edit(present: Body) -> Body:
            if present["metadata"]["uid"] == uid:
                present["status"] = status
            return present

        await self._api.change(self._pod, *key, edit, "status", _WRITES)

    async def _renew(self, name: str, every: float) -> None:
        kind = self._api.kind("Lease")
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        if self._api.store.get(kind.storage, _LEASES, name) is None:
            spec = {"holderIdentity": name, "leaseDurationSeconds": int(every * 4)}
            body = {"metadata": {"name": name}, "spec": {**spec, "renewTime": now}}
            await self._api.create(kind, _LEASES, body, _WRITES)
            return

        def edit(present: Body) -> Body:
            present["spec"] = {**(present.get("spec") or {}), "renewTime": now}
            return present

        await self._api.change(kind, _LEASES, name, edit, options=_WRITES)
