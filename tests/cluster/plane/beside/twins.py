"""Twins: pods like those that Aliquot has decided about, for kube-scheduler to decide about."""

import asyncio
import copy
import itertools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.resource import PODS
from tests.cluster.plane.beside import kube_scheduler
from tests.cluster.plane.beside.kube_scheduler import Extender
from tests.cluster.plane.ground import Ground

_LOOK, _PATIENCE = 0.01, 60.0
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What kube-scheduler says of a pod."""

    uid: str
    feasible: frozenset[str]
    node: str | None
    message: str


class Twins:
    """Makes pods, and follows what becomes of them."""

    def __init__(self, ground: Ground, extender: Extender) -> None:
        self._ground, self._extender = ground, extender
        self._client = ground.client
        self.pods = ground.books.pods
        """All pods there are, by uid."""

    async def ask(self, body: Body, node: str | None = None) -> Answer:
        """What kube-scheduler says of a pod; it binds it to this node if it accepts it.

        Without a node the pod is gone again afterwards.
        """
        twin = copy.deepcopy(body)
        twin["metadata"]["name"] += f"-twin-{next(_NUMBERS)}"
        about = twin["metadata"]
        path = f"{about['namespace']}/{about['name']}"
        twin["spec"]["schedulerName"] = kube_scheduler.NAME
        if node is not None:
            self._extender.pins[path] = node
        uid = (await self.make(twin))["metadata"]["uid"]
        await self.until(lambda: self.told(uid))
        feasible = self._extender.feasible.pop(path, frozenset())
        answer = Answer(uid, feasible, self.node(uid), self.message(uid) or "")
        if answer.node is None:
            await self.forget([self.pods[uid]])
        return answer

    async def make(self, body: Body) -> Body:
        """Create a pod."""
        made: Body = await self._client.post(PODS.path(body["metadata"]["namespace"]), body)
        await self.until(lambda: made["metadata"]["uid"] in self.pods)
        return made

    async def forget(self, pods: Iterable[Body]) -> None:
        """Delete pods, and wait until they are gone."""
        pods = list(pods)
        for each in pods:
            about = each["metadata"]
            if about.get("finalizers"):
                where = PODS.path(about["namespace"], about["name"])
                with suppress(ApiError):
                    await self._client.patch(where, {"metadata": {"finalizers": None}})
            await self.delete(each)
        uids = {each["metadata"]["uid"] for each in pods}
        await self.until(lambda: not uids & self.pods.keys())

    async def delete(self, pod: Body) -> None:
        """Delete a pod; one with a finalizer stays, and terminates."""
        about = pod["metadata"]
        how = {"gracePeriodSeconds": 0, "preconditions": {"uid": about["uid"]}}
        with suppress(ApiError):
            await self._client.delete(PODS.path(about["namespace"], about["name"]), how)

    def node(self, uid: str) -> str | None:
        """The node that a pod is bound to."""
        found: str | None = self.pods.get(uid, {}).get("spec", {}).get("nodeName")
        return found

    def message(self, uid: str) -> str | None:
        """Why a pod waits, as its scheduler says."""
        for each in self.pods.get(uid, {}).get("status", {}).get("conditions") or ():
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return f"{each.get('reason')}: {each.get('message')}"
        return None

    def told(self, uid: str) -> bool:
        """Has its scheduler decided about a pod?"""
        return self.node(uid) is not None or self.message(uid) is not None

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds."""
        end = time.monotonic() + _PATIENCE
        while not holds():
            assert not self._ground.watching.done(), self._ground.watching
            assert time.monotonic() < end, f"not so after {_PATIENCE:.0f} s"
            await asyncio.sleep(_LOOK)
