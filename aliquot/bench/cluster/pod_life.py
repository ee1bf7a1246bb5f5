"""The life of the pods of a measured cluster: kubelets that start and stop them, and their owners.

Neither kube-apiserver nor the measured nodes have kubelets or controllers. Here bound pods run, or
end well once they have run for their time; pods in deletion are gone at once, and an owner replaces
each of its pods that goes before it has ended well, as a ReplicaSet or a Job does. Everything
follows from one watch, whose times are the ones that are measured.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from aliquot.dialects.core.objects import Metadata, Wire
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS, Resource
from aliquot.kube.watch.known_names import Name
from aliquot.kube.watch.reflector import Reflector

_AT_ONCE = 32
"""Kubelets that write at the same time: those of 40 nodes do not wait for each other either."""
_STRATEGIC = "application/strategic-merge-patch+json"
_PASSING = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""The pod is gone, or was written at the same moment: the watch tells."""

Owner = Callable[[str, str], Body | None]
"""By namespace and name of a pod that went: the pod in its place, if it has an owner."""
Duration = Callable[[str], float]
"""By a pod's name: how many seconds it runs."""


class _Spec(Wire):
    node_name: str | None = None


class _Status(Wire):
    phase: str | None = None


class _Seen(Wire):
    metadata: Metadata
    spec: _Spec
    status: _Status


@dataclass(slots=True)
class Life:
    """When what was seen of a pod, on the clock of `time.perf_counter`; None: not yet."""

    bound: float | None = None
    ending: float | None = None
    """Its deletion was asked for after it was bound: it was evicted."""
    ended: float | None = None
    """It has ended well."""


class PodLife:
    """Starts, stops and replaces pods; keeps the life of each by name."""

    def __init__(self, client: Client, owner: Owner, seconds: Duration | None = None) -> None:
        """`owner` returns the pod that replaces one that went, by its namespace and name.

        `seconds` says by a pod's name how long it runs; without it, pods do not end.
        """
        self.pods: dict[str, Life] = {}
        self.ready = asyncio.Event()
        """Set once the watch has begun."""
        self.ended_well = 0
        """How many pods have ended well."""
        self._client = client
        self._owner = owner
        self._seconds = seconds
        self._work: asyncio.Queue[Callable[[], Coroutine[None, None, object]]] = asyncio.Queue()
        self._busy = 0
        self._started: set[str] = set()
        self._stopped: set[str] = set()

    @property
    def bound(self) -> dict[str, float]:
        """When each pod was bound, of those that were."""
        return {name: life.bound for name, life in self.pods.items() if life.bound is not None}

    @property
    def idle(self) -> bool:
        """Is nothing left to be started, stopped or replaced?"""
        return self._work.empty() and not self._busy

    def put(self, found: _Seen) -> None:
        """A pod was added or changed."""
        about = found.metadata
        life = self.pods.setdefault(about.name, Life())
        if not found.spec.node_name:
            return
        uid = about.uid or ""
        if life.bound is None:
            life.bound = time.perf_counter()
        if about.deletion_timestamp:
            if life.ending is None:
                life.ending = time.perf_counter()
            self._once(self._stopped, uid, lambda: self._stop(about))
        elif found.status.phase in (None, "Pending"):
            if self._seconds is None:
                self._once(self._started, uid, lambda: self._start(about))
            elif uid not in self._started:
                self._started.add(uid)
                loop = asyncio.get_running_loop()
                loop.call_later(self._seconds(about.name), self._end_soon, about)
        elif found.status.phase == "Succeeded" and life.ended is None:
            life.ended = time.perf_counter()
            self.ended_well += 1

    def gone(self, name: Name) -> None:
        """A pod was deleted."""
        life = self.pods.setdefault(name.name, Life())
        if life.bound is not None and life.ending is None:
            life.ending = time.perf_counter()
        successor = self._owner(name.namespace, name.name)
        if successor is not None and life.ended is None:
            self._work.put_nowait(lambda: self._client.post(PODS.path(name.namespace), successor))

    def synced(self, resource: Resource) -> None:
        """All existing pods have been listed."""
        self.ready.set()

    async def run(self) -> None:
        """Watch and write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Reflector(self._client, PODS, _Seen, self).run())
            for _ in range(_AT_ONCE):
                group.create_task(self._worker())

    def _end_soon(self, about: Metadata) -> None:
        """The pod has run for its time, unless it was evicted before."""
        if self.pods[about.name].ending is None:
            self._work.put_nowait(lambda: self._end(about))

    def _once(
        self, done: set[str], uid: str, work: Callable[[], Coroutine[None, None, object]]
    ) -> None:
        if uid not in done:
            done.add(uid)
            self._work.put_nowait(work)

    async def _worker(self) -> None:
        while True:
            work = await self._work.get()
            self._busy += 1
            try:
                await work()
            except ApiError as error:
                if error.code not in _PASSING:
                    raise
            finally:
                self._busy -= 1

    async def _start(self, about: Metadata) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        status = {"phase": "Running", "startTime": now, "conditions": [ready]}
        where = PODS.path(about.namespace, about.name, "status")
        body = {"metadata": {"uid": about.uid}, "status": status}
        await self._client.patch(where, body, "strategic")

    async def _end(self, about: Metadata) -> None:
        """The pod ends well: one write, since no figure depends on when it was seen to run."""
        where = PODS.path(about.namespace, about.name, "status")
        body = {"metadata": {"uid": about.uid}, "status": {"phase": "Succeeded"}}
        await self._client.call("PATCH", where, body, content=_STRATEGIC)

    async def _stop(self, about: Metadata) -> None:
        only = {"gracePeriodSeconds": 0, "preconditions": {"uid": about.uid}}
        await self._client.delete(PODS.path(about.namespace, about.name), only)


@asynccontextmanager
async def live(
    client: Client, owner: Owner, seconds: Duration | None = None
) -> AsyncIterator[PodLife]:
    """Let pods live for as long as the block lasts; the watch has begun."""
    life = PodLife(client, owner, seconds)
    running = asyncio.create_task(life.run())
    try:
        await life.ready.wait()
        yield life
    finally:
        running.cancel()
