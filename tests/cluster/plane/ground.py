"""The ground that a control plane is tested on: a server, kubelets that end pods, and the books.

Everything is in one process and one event loop, so that a test knows when all is quiet. Nothing
here asks the control plane what there is: the books are kept from a watch of the server's own.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from aliquot.dialects.configuration import Configuration
from aliquot.engine import Engine, Knobs
from aliquot.errors import ApiError
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import (
    BUDGETS,
    CLAIMS,
    CUSTOM,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE,
    VOLUMES,
    Resource,
)
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control import scheduler
from aliquot.kube.control.control_plane import ControlPlane, control_plane
from aliquot.kube.observe.audit import violations
from tests.cluster.plane.books import Body, Books, path

_RESOURCES = {
    (each.group, each.kind): each
    for each in (
        *(NODES, NAMESPACES, PODS, BUDGETS, PRIORITY_CLASSES, *CUSTOM.values()),
        *(CLAIMS, VOLUMES, *STORAGE),
    )
}
_PROTECTED = (CLAIMS, VOLUMES)
"""What is gone only once nothing uses it."""
_WIPED = (PODS, EVENTS, BUDGETS, *CUSTOM.values(), *_PROTECTED, *STORAGE, NODES)
_STOPPING = 0.02
_LOOK = 0.01
_QUIET = 4
"""So many looks in a row must find nothing new."""


class Ground:
    """A cluster to schedule."""

    def __init__(self, kubeconfig: Path, client: Client) -> None:
        self.kubeconfig = kubeconfig
        self.client = client
        self.books = Books(())
        self.stopping = _STOPPING
        """How many seconds pods take to stop."""
        self._spaces: set[str] = set()
        self.watching = asyncio.create_task(self._watch())

    async def lay(self, objects: Iterable[Body]) -> None:
        """Clear everything away, and put these there."""
        await self.clear()
        objects = list(objects)
        self.books = Books(each for each in objects if each["kind"] != "Pod")
        for each in objects:
            await self.make(each)

    async def clear(self) -> None:
        """Take everything away."""
        for resource in _WIPED:
            spaces = sorted(self._spaces) if resource.namespaced else [""]
            for space in spaces:
                await self._clear(resource, space)
        for resource in _PROTECTED:
            while (await self.client.get(resource.path()))["items"]:
                await asyncio.sleep(_LOOK)

    async def _clear(self, resource: Resource, space: str) -> None:
        query = {"gracePeriodSeconds": 0}
        with suppress(ApiError):
            await self.client.delete(resource.path(space or None), query=query)

    async def make(self, body: Body) -> Body:
        """Make an object, and its namespace if need be."""
        resource, space = resource_of(body), body["metadata"].get("namespace")
        if space and space not in self._spaces:
            await self._make_space(space)
        made: Body = await self.client.post(resource.path(space), body)
        if "status" in body and body["kind"] not in ("Node", "Pod"):
            where = resource.path(space, body["metadata"]["name"], "status")
            made = await self.client.patch(where, {"status": body["status"]})
        return made

    async def _make_space(self, name: str) -> None:
        self._spaces.add(name)
        with suppress(ApiError):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.post(NAMESPACES.path(), body)

    async def _watch(self) -> None:
        """Keep the books, and play the kubelet of pods that are to end."""
        said = await self.client.get(PODS.path())
        query = {
            "watch": "true",
            "resourceVersion": said["metadata"]["resourceVersion"],
            "timeoutSeconds": 3600,
        }
        async with asyncio.TaskGroup() as group, self.client.stream(PODS.path(), query) as lines:
            async for line in lines:
                if line:
                    self._hear(json.loads(line), group)

    def _hear(self, event: Body, group: asyncio.TaskGroup) -> None:
        pod = event["object"]
        if event["type"] == "DELETED":
            self.books.gone(pod)
            return
        first = pod["metadata"]["uid"] not in self.books.ended
        self.books.put(pod)
        if first and pod["metadata"]["uid"] in self.books.ended:
            group.create_task(self._stop(pod))

    async def _stop(self, pod: Body) -> None:
        await asyncio.sleep(self.stopping)
        await self.end(pod)

    async def end(self, pod: Body) -> None:
        """Make an end of a pod, unless it is gone already."""
        about = pod["metadata"]
        how = {"gracePeriodSeconds": 0, "preconditions": {"uid": about["uid"]}}
        try:
            await self.client.delete(PODS.path(about["namespace"], about["name"]), how)
        except ApiError as error:
            if error.code not in (404, 409):  # somebody else was faster
                raise

    @asynccontextmanager
    async def plane(
        self,
        configuration: Configuration | None = None,
        make_engine: Callable[[str, Knobs | None], Engine] = Engine,
    ) -> AsyncIterator[ControlPlane]:
        """Run a control plane that leads."""
        deciding = scheduler.Settings(configuration or Configuration(), make_engine=make_engine)
        settings = plane.Settings(deciding, lease=None)
        async with control_plane(partial(access.find, self.kubeconfig, None), settings) as made:
            yield made

    async def settled(
        self, made: ControlPlane, holds: Callable[[], object], seconds: float = 60
    ) -> None:
        """Wait until this holds, and nothing moves any more."""
        quiet, before = 0, None
        try:
            async with asyncio.timeout(seconds):
                while quiet < _QUIET:
                    await asyncio.sleep(_LOOK)
                    assert not self.watching.done(), self.watching.exception()
                    now = self._moment(made)
                    still = now is not None and now == before and made.writer.idle
                    quiet = quiet + 1 if still and holds() else 0
                    before = now
        except TimeoutError:
            raise AssertionError(f"not so after {seconds} s: {self.told(made)}") from None

    def _moment(self, made: ControlPlane) -> object:
        """What is there, if the control plane leads and knows of it all."""
        intake = made.scheduler.intake
        known = {
            (uid, each.pod.node, each.pod.terminating)
            for uid, each in intake.mirror.records.items()
            if each.alive
        }
        there = {
            (uid, pod["spec"].get("nodeName"), bool(pod["metadata"].get("deletionTimestamp")))
            for uid, pod in self.books.pods.items()
        }
        version = [pod["metadata"]["resourceVersion"] for pod in self.books.pods.values()]
        return version if known == there and made.scheduler.engine is not None else None

    def told(self, made: ControlPlane) -> str:
        """How everything stands, for who has to find out why."""
        said = made.scheduler.intake.pods.shown
        return str(
            {
                path(pod): (
                    pod["spec"].get("nodeName"),
                    pod["metadata"].get("deletionTimestamp"),
                    said.get(uid),
                )
                for uid, pod in self.books.pods.items()
            }
        )

    def waiting(self) -> dict[str, str]:
        """Why pods wait, as far as they say so."""
        found = {}
        for pod in self.books.pods.values():
            for condition in pod["status"].get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    found[path(pod)] = condition["reason"]
        return found

    def sound(self, made: ControlPlane) -> None:
        """Nothing was ever held twice, and the ledger agrees with the cluster."""
        assert self.books.wrong == []
        assert list(self.books.torn()) == []
        engine = made.scheduler.engine
        assert engine is not None
        assert [each for each in violations(engine, made.scheduler.intake.mirror) if each] == []


@asynccontextmanager
async def ground(kubeconfig: Path) -> AsyncIterator[Ground]:
    """A ground on a server that is running, cleared."""
    async with Client(access.find(kubeconfig, None)) as client:
        made = Ground(kubeconfig, client)
        try:
            yield made
        finally:
            made.watching.cancel()
            with suppress(asyncio.CancelledError):
                await made.watching


def resource_of(body: Body) -> Resource:
    """Where objects like this are."""
    group, _, _ = body["apiVersion"].rpartition("/")
    return _RESOURCES[group, body["kind"]]
