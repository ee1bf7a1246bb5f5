"""Load: owners that keep so many pods each, and kubelets that start, complete and stop them.

Everything is looked at again and again, and brought about where it is not so: whatever a server
that is away made of a request, the next look repairs. While the load rests, owners want what they
wanted last, nothing completes, and evicted pods still come again.
"""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from tests.cluster.chaos.feed import Feed
from tests.cluster.chaos.world import TEAMS, World
from tests.cluster.plane.cluster import resource_of

_LOOK = 0.2
_CHANGES = 1.0
"""Owners a second that come to want another number of pods."""
_PATIENCE = 2.0
"""Seconds before a write is repeated of which nothing was seen."""
_UNSEEN = 5.0
"""Seconds after which a pod that was created and not seen counts as never created."""
_STOPPING = (0.05, 1.0)
"""Seconds that a pod takes to stop."""
_OWNER = "owner"
_PLAN = (
    # name, replicas at most, cpus of each, priority, seconds each runs, is it a gang
    ("web", 20, 1, "low", None, False),
    ("jobs", 6, 1, "low", (0.5, 3.0), False),
    ("big", 4, 4, "low", None, False),
    ("vip", 4, 2, "high", None, False),
    ("gang", 4, 2, "low", (4.0, 10.0), True),
)
"""What each team may run at most is 58 cpus; all teams together more than twice what there is."""

_RUNS = {name: runs for name, _, _, _, runs, _ in _PLAN}


@dataclass
class Owner:
    """Keeps so many pods, as a Deployment or Job does."""

    team: str
    name: str
    most: int
    cpus: int
    priority: str
    runs: tuple[float, float] | None
    gang: bool
    wanted: int = 0


class Load:
    """All owners and kubelets of a cluster."""

    def __init__(self, world: World, client: Client, feed: Feed, dice: random.Random) -> None:
        self.world = world
        self.resting = False
        self.deleted: set[str] = set()
        """The uids of pods that were deleted from here, not by the scheduler."""
        self.lost_nodes: set[str] = set()
        self.owners = [Owner(team, *plan) for team in TEAMS for plan in _PLAN]
        self._client = client
        self._feed = feed
        self._dice = dice
        self._sent: dict[str, float] = {}
        self._ends: dict[str, float] = {}
        self._number = 0
        self._made: dict[str, tuple[Owner, float]] = {}
        """Pods that were created a moment ago, and have not been seen yet."""
        for owner in self.owners:
            owner.wanted = self._some(owner)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for work in self._due():
                    group.create_task(_tried(work))
                if not self.resting and self._dice.random() < _LOOK * _CHANGES:
                    self.scale(self._dice.choice(self.owners))
                await asyncio.sleep(_LOOK)

    def scale(self, owner: Owner) -> None:
        """An owner comes to want another number of pods."""
        owner.wanted = self._some(owner)

    def stream(self) -> None:
        """See to it that pods end and come all the time: the short ones of each team."""
        for owner in self.owners:
            if owner.name == "jobs":
                owner.wanted = max(owner.wanted, 2)

    async def delete_many(self, team: str) -> None:
        """All pods of a team are deleted at once; their owners make new ones."""
        pods = [each for each in self._pods() if each["metadata"]["namespace"] == team]
        await asyncio.gather(*(_tried(self.delete(each)) for each in pods))

    async def delete(self, pod: Body) -> None:
        """Delete a pod, as its owner does."""
        about = pod["metadata"]
        self.deleted.add(about["uid"])
        only = {"preconditions": {"uid": about["uid"]}}
        await self._client.delete(PODS.path(about["namespace"], about["name"]), only)

    def _some(self, owner: Owner) -> int:
        """How many pods an owner wants next: a gang all of them or none."""
        if owner.gang:
            return self._dice.choice((0, owner.most))
        return self._dice.randint(1 if owner.name == "jobs" else 0, owner.most)

    def _pods(self) -> list[Body]:
        return list(self._feed.objects["Pod"].values())

    def _due(self) -> Iterator[Awaitable[object]]:
        alive: dict[tuple[str, str], list[Body]] = defaultdict(list)
        now = time.monotonic()
        pods = self._pods()
        for pod in pods:
            self._made.pop(pod["metadata"]["name"], None)
        for name, (_, at) in list(self._made.items()):
            if now - at > _UNSEEN:
                del self._made[name]
        for pod in pods:
            about = pod["metadata"]
            over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            if "deletionTimestamp" not in about and not over:
                owner = (about["namespace"], (about.get("labels") or {}).get(_OWNER, ""))
                alive[owner].append(pod)
            yield from self._live(pod, over)
        for each in self.owners:
            yield from self._keep(each, alive[each.team, each.name])

    def _keep(self, owner: Owner, pods: list[Body]) -> Iterator[Awaitable[object]]:
        """Make the pods that are missing, and delete those that are too many."""
        unseen = sum(each is owner for each, _ in self._made.values())
        for _ in range(owner.wanted - len(pods) - unseen):
            self._number += 1
            name = f"{owner.name}-{self._number}"
            self._made[name] = (owner, time.monotonic())
            yield self._make(owner, name)
        youngest = sorted(pods, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))
        for pod in youngest[owner.wanted :]:
            if self._again(f"{pod['metadata']['uid']} surplus"):
                yield self.delete(pod)

    async def _make(self, owner: Owner, name: str) -> None:
        gang = "gang" if owner.gang else None
        if gang is not None:
            body = self.world.gang(owner.team, gang, owner.most)
            with suppress(ApiError):  # it is there already
                await self._client.post(resource_of(body).path(owner.team), body)
        pod = self.world.pod(owner.team, name, owner.cpus, owner.priority, gang)
        pod["metadata"].setdefault("labels", {})[_OWNER] = owner.name
        await self._client.post(PODS.path(owner.team), pod)

    def _live(self, pod: Body, over: bool) -> Iterator[Awaitable[object]]:
        """What the kubelet of a pod's node does with it now."""
        about, node = pod["metadata"], pod["spec"].get("nodeName")
        uid, phase = about["uid"], (pod.get("status") or {}).get("phase", "Pending")
        if node in self.lost_nodes:
            if self._again(f"{uid} lost"):
                self.deleted.add(uid)
                yield self._end(pod)
        elif "deletionTimestamp" in about:
            end = self._ends.setdefault(f"{uid} stop", self._soon(_STOPPING))
            if node and time.monotonic() >= end and self._again(f"{uid} stop"):
                yield self._end(pod)
        elif over:
            if self._again(f"{uid} over"):
                yield self.delete(pod)
        elif node and phase == "Pending":
            if self._again(f"{uid} start"):
                yield self._write_phase(pod, "Running")
        elif node and (runs := self._runs(pod)) and not self.resting:
            end = self._ends.setdefault(uid, self._soon(runs))
            if time.monotonic() >= end and self._again(f"{uid} end"):
                yield self._write_phase(pod, "Succeeded")

    def _runs(self, pod: Body) -> tuple[float, float] | None:
        return _RUNS.get((pod["metadata"].get("labels") or {}).get(_OWNER, ""))

    def _soon(self, bounds: tuple[float, float]) -> float:
        return time.monotonic() + self._dice.uniform(*bounds)

    def _again(self, key: str, patience: float = _PATIENCE) -> bool:
        """May this be written, since it was not for a while?"""
        now = time.monotonic()
        if now - self._sent.get(key, -patience) < patience:
            return False
        self._sent[key] = now
        return True

    async def _write_phase(self, pod: Body, phase: str) -> None:
        about = pod["metadata"]
        body = {"metadata": {"uid": about["uid"]}, "status": {"phase": phase}}
        where = PODS.path(about["namespace"], about["name"], "status")
        await self._client.patch(where, body, "strategic")

    async def _end(self, pod: Body) -> None:
        about = pod["metadata"]
        only = {"gracePeriodSeconds": 0, "preconditions": {"uid": about["uid"]}}
        await self._client.delete(PODS.path(about["namespace"], about["name"]), only)


async def _tried(work: Awaitable[object]) -> None:
    """A write that may fail: the next look repairs it."""
    with suppress(ApiError, UnreachableError):
        await work
