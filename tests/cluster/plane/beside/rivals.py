"""Two schedulers on one cluster: what Aliquot does with a pod, and what kube-scheduler says of it.

Every pod that Aliquot has bound is deleted and comes again as a *twin* that names kube-scheduler,
one by one and in the order of Aliquot's decisions, so that kube-scheduler judges the cluster that
Aliquot saw. It must accept the node; where Aliquot's own view of all nodes at that moment is known,
it must accept the same nodes. A twin of every pod that Aliquot leaves waiting must wait as well.

What one of them has not heard of yet is no wrong answer: each is asked again after a while.
"""

import asyncio
import copy
import time
from contextlib import suppress
from dataclasses import dataclass, field

import yaml

from aliquot.engine import Reason
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.resource import CLAIMS, NAMESPACES, NODES, PODS, STORAGE, VOLUMES, Resource
from aliquot.kube.control.control_plane import ControlPlane
from tests.cluster.plane.beside.kube_scheduler import Extender
from tests.cluster.plane.beside.random_cluster import SPACES, RandomCluster
from tests.cluster.plane.beside.twins import Answer, Twins
from tests.cluster.plane.beside.witness import Notes
from tests.cluster.plane.ground import Ground

_LOOK = 0.01
_QUIET = 0.15
"""Seconds without news from the server, after which both are taken to know everything."""
_LATE = 2.0
"""Seconds until a scheduler that gave another answer is asked again."""
_CHANGES = 4
"""The most changes in a row: the first that lets a pod start is the last."""
_CLASSES, _CSI_NODES = STORAGE[0], STORAGE[1]
_KEPT = "beside.invalid/kept"


@dataclass(slots=True)
class Tally:
    """What was tried, and every wrong answer in words."""

    clusters: int = 0
    bound: int = 0
    woken: int = 0
    """Those of them that started after something had changed in the cluster."""
    waiting: int = 0
    judged: int = 0
    """Nodes on which both gave their view of one pod."""
    invalid: int = 0
    asked_again: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        pods = f"{self.bound} pods bound ({self.woken} woken), {self.waiting} left waiting"
        rest = f"{self.invalid} invalid, asked again {self.asked_again} times"
        figures = f"{self.clusters} clusters, {pods}, {self.judged} nodes judged by both"
        return f"{figures}, {rest}, {len(self.wrong)} wrong answers"


class Rivals:
    """The two schedulers on a random cluster."""

    def __init__(
        self,
        ground: Ground,
        plane: ControlPlane,
        extender: Extender,
        notes: Notes,
        tally: Tally,
    ) -> None:
        self._ground, self._plane = ground, plane
        self._notes, self.tally = notes, tally
        self._client, self._pods = ground.client, ground.books.pods
        self._twins = Twins(ground, extender)
        self._story: list[str] = []
        """What happened on this cluster, for a wrong answer."""
        self._held = False
        """Does a pod of this round wait for pods that terminate? Then nodes are held for it."""
        self._bodies: dict[str, Body] = {}
        """The pods of this round as they were drawn, by uid."""
        self._random: RandomCluster

    async def play(self, random: RandomCluster, rounds: int) -> None:
        """So many rounds on one cluster."""
        self._random = random
        self._story.clear()
        try:
            await self._lay()
            for _ in range(rounds):
                await self._round()
        finally:
            await self._clear()
        self.tally.clusters += 1
        self.tally.wrong += [f"the engine failed: {each}" for each in self._notes.failures]
        self._notes.failures.clear()

    # The cluster.

    async def _lay(self) -> None:
        random = self._random
        for name, labels in random.spaces.items():
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with suppress(ApiError):
                await self._client.post(NAMESPACES.path(), body)
            alone: Body = {"team": None, "stage": None}
            change = {"metadata": {"labels": {**alone, **labels}}}
            await self._client.patch(NAMESPACES.path(None, name), change)
        await self._client.post(_CLASSES.path(), random.storage_class)
        for claim, volume in random.claims:
            await self._lay_claim(claim, volume)
        for node in random.nodes:
            await self._client.post(NODES.path(), node)
        for each in random.drivers:
            await self._client.post(_CSI_NODES.path(), each)
        for number in range(random.choose(12)):
            await self._lay_pod(number)
        await self._quiet()

    async def _lay_claim(self, claim: Body, volume: Body | None) -> None:
        about = claim["metadata"]
        made = await self._client.post(CLAIMS.path(about["namespace"]), claim)
        if volume is None:
            return
        volume["spec"]["claimRef"]["uid"] = made["metadata"]["uid"]
        await self._client.post(VOLUMES.path(), volume)
        status = {"status": {"phase": "Bound"}}
        await self._client.patch(VOLUMES.path(None, volume["metadata"]["name"], "status"), status)
        await self._client.patch(CLAIMS.path(about["namespace"], about["name"], "status"), status)

    async def _lay_pod(self, number: int) -> None:
        """A pod that runs; one in eight is about to go, one in eight has ended."""
        body = self._random.pod(running=True)
        nodes = self._random.nodes
        body["spec"]["nodeName"] = nodes[self._random.choose(len(nodes))]["metadata"]["name"]
        leaves, ended = number % 8 == 3, number % 8 == 5
        if leaves:
            body["metadata"]["finalizers"] = [_KEPT]
        made = await self._make(body)
        if made is None:
            return
        about = made["metadata"]
        if leaves:
            await self._twins.delete(made)
        elif ended:
            await self._twins.until(lambda: self._phase(about["uid"]) == "Running")
            where = PODS.path(about["namespace"], about["name"], "status")
            await self._client.patch(where, {"status": {"phase": "Succeeded"}})

    async def _clear(self) -> None:
        await self._twins.forget(list(self._pods.values()))
        for resource in (CLAIMS, VOLUMES, _CLASSES, _CSI_NODES, NODES):
            for space in SPACES if resource.namespaced else (None,):
                await self._clear_all(resource, space)
        await self._quiet()

    async def _clear_all(self, resource: Resource, space: str | None) -> None:
        found = await self._client.get(resource.path(space))
        for each in found["items"]:
            where = resource.path(space, each["metadata"]["name"])
            with suppress(ApiError):
                await self._client.delete(where, {"gracePeriodSeconds": 0})
                if each["metadata"].get("finalizers"):
                    await self._client.patch(where, {"metadata": {"finalizers": None}})

    # A round.

    async def _round(self) -> None:
        """Pods come; what Aliquot did with them is compared. Sometimes something changes first."""
        self._bodies.clear()
        self._notes.binds.clear()
        self._notes.refused.clear()
        self._held = False
        drawn = [self._random.pod() for _ in range((1, 1, 2, 4)[self._random.choose(4)])]
        made = await asyncio.gather(*map(self._make_ours, drawn))
        for body, pod in zip(drawn, made, strict=True):
            if pod is not None:
                self._bodies[pod["metadata"]["uid"]] = body
        await self._decided()
        waiting = self._waiting()
        self._held = self._holds()
        if waiting and self._random.choose(2):
            started, changes = len(self._notes.binds), _CHANGES
            while changes and len(self._notes.binds) == started:
                changes -= 1
                await self._change()
                await self._decided()
            await self._compare(started)
            self.tally.woken += len(self._notes.binds) - started
        else:
            await self._compare(0)

    async def _compare(self, since: int) -> None:
        """Compare what Aliquot has decided since so many pods were bound."""
        self._held |= self._holds()
        for uid in self._waiting() if not self._held else ():
            await self._compare_waiting(uid)
        await self._twins.forget([self._pods[uid] for uid in self._waiting()])
        binds = [each for each in self._notes.binds[since:] if each[0] in self._pods]
        await self._twins.forget([self._pods[uid] for uid, _ in binds])
        for uid, node in binds:
            await self._compare_bound(uid, node)

    async def _compare_waiting(self, uid: str) -> None:
        """Kube-scheduler must leave this pod waiting, too."""
        self.tally.waiting += 1
        answer = await self._twins.ask(self._bodies[uid])
        if not answer.feasible:
            return
        self.tally.asked_again += 1
        await asyncio.sleep(_LATE)
        if self._twins.node(uid) is not None:
            self.tally.waiting -= 1
            return
        answer = await self._twins.ask(self._bodies[uid])
        if answer.feasible:
            self._blame(uid, "leaves it waiting", answer, self._refusals(uid))

    async def _compare_bound(self, uid: str, node: str) -> None:
        """Kube-scheduler must accept the node, and refuse those that Aliquot refuses."""
        self.tally.bound += 1
        self._story.append(f"{self._bodies[uid]['metadata']['name']} is bound to {node}")
        refused = self._notes.refused.get(uid)
        answer = await self._twins.ask(self._bodies[uid], node)
        if self._agrees(answer, node, refused):
            return
        self.tally.asked_again += 1
        await asyncio.sleep(_LATE)
        if answer.node is not None:
            await self._twins.forget([self._pods[answer.uid]])
        answer = await self._twins.ask(self._bodies[uid], node)
        if not self._agrees(answer, node, refused):
            self._blame(uid, f"binds it to {node}", answer, refused)

    def _agrees(self, answer: Answer, node: str, refused: dict[str, str] | None) -> bool:
        if node not in answer.feasible:
            return False
        if refused is None or self._held:
            return True
        self.tally.judged += len(self._random.nodes)
        names = {each["metadata"]["name"] for each in self._random.nodes}
        return names - refused.keys() == answer.feasible

    def _blame(self, uid: str, does: str, answer: Answer, refused: dict[str, str] | None) -> None:
        body = self._bodies[uid]
        said = f"kube-scheduler: {sorted(answer.feasible)}; {answer.message}"
        about = f"seed {self._random.seed}, {body['metadata']['name']}: Aliquot {does}"
        condition = f"Aliquot says: {self._twins.message(uid)}"
        lines = (about, f"Aliquot refuses: {refused}", condition, said, yaml.safe_dump(body))
        there = [*self._random.nodes, *map(_rules, self._pods.values())]
        self.tally.wrong.append("\n".join((*lines, *self._story, yaml.safe_dump(there))))

    def _refusals(self, uid: str) -> dict[str, str] | None:
        engine = self._plane.scheduler.engine
        return engine.node_refusals(uid) if engine is not None else None

    async def _change(self) -> None:
        """Something changes that may let a pod start: a pod goes, a node or a namespace changes."""
        there = [each for each in self._ground.books.bound() if not _leaves(each)]
        what = self._random.choose(4)
        if what < 2 and there:
            there.sort(key=lambda each: str(each["metadata"]["name"]))
            gone = there[self._random.choose(len(there))]
            self._story.append(f"{gone['metadata']['name']} goes")
            await self._twins.forget([gone])
        elif what == 2:
            name, change = self._random.space_change()
            self._story.append(f"namespace {name}: {change}")
            await self._client.patch(NAMESPACES.path(None, name), change)
        else:
            node = self._random.nodes[self._random.choose(len(self._random.nodes))]
            where = NODES.path(None, node["metadata"]["name"])
            change = self._random.change(node)
            self._story.append(f"node {node['metadata']['name']}: {change}")
            await self._client.patch(where, change)

    # Pods.

    async def _make_ours(self, body: Body) -> Body | None:
        ours = copy.deepcopy(body)
        ours["spec"]["schedulerName"] = "aliquot"
        return await self._make(ours)

    async def _make(self, body: Body) -> Body | None:
        """Create a pod; None if the API server finds it invalid."""
        try:
            made = await self._twins.make(body)
        except ApiError as error:
            if error.code != 422:
                raise
            self.tally.invalid += 1
            return None
        return made

    def _waiting(self) -> list[str]:
        """The pods of this round that Aliquot has not bound, by uid."""
        return [uid for uid in self._there() if self._twins.node(uid) is None]

    def _holds(self) -> bool:
        messages = [self._twins.message(uid) or "" for uid in self._waiting()]
        return any(each.startswith(Reason.WAITING_FOR_VICTIMS) for each in messages)

    def _there(self) -> list[str]:
        """The pods of this round that exist, by uid."""
        return [uid for uid in self._bodies if uid in self._pods]

    def _phase(self, uid: str) -> str | None:
        found: str | None = self._pods.get(uid, {}).get("status", {}).get("phase")
        return found

    # Time.

    async def _decided(self) -> None:
        """Wait until Aliquot has decided about every pod, and all is quiet."""
        await self._twins.until(lambda: all(map(self._twins.told, self._there())))
        await self._quiet()
        decided = {uid for uid, _ in self._notes.binds}
        await self._twins.until(
            lambda: all(self._twins.node(uid) for uid in self._there() if uid in decided)
        )

    async def _quiet(self) -> None:
        """Wait until there is no news, and nothing left to write."""
        since, before = time.monotonic(), None
        while time.monotonic() < since + _QUIET:
            pods = self._pods.values()
            now = [each["metadata"]["resourceVersion"] for each in pods]
            if now != before or not self._plane.writer.idle:
                since, before = time.monotonic(), now
            await asyncio.sleep(_LOOK)


def _rules(pod: Body) -> Body:
    """What of a pod decides about others."""
    about = {key: each for key, each in pod["metadata"].items() if key != "managedFields"}
    return {"metadata": about, "spec": pod["spec"], "phase": pod["status"].get("phase")}


def _leaves(pod: Body) -> bool:
    return "deletionTimestamp" in pod["metadata"]
