"""Intake, engine and executor, with a cluster that says to each write what the test wants."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.dialects.core.objects import NodeWire, PodWire
from aliquot.dialects.core.storage.volumes import BIND_COMPLETED
from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Decision
from aliquot.errors import ApiError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CLAIMS, CUSTOM, NODES, VOLUMES
from aliquot.kube.execution.events import Events
from aliquot.kube.execution.executor import Executor
from aliquot.kube.execution.pod_status import PodStatus
from aliquot.kube.execution.writer import Writer
from aliquot.kube.intake.intake import Intake
from aliquot.kube.observe.metrics import Metrics
from tests.build import manifests

QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
Body = dict[str, Any]
SECOND = 10**9


class Answers:
    """In place of a client: keeps what is written, and says what the test wants it to say."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, Body]] = []
        self.refuse: dict[str, Callable[[], ApiError]] = {}
        """Refusals, by the end of the path."""
        self.objects: dict[str, Body] = {}

    async def post(self, path: str, body: Body, **_: Any) -> Body:
        return self._take("POST", path, body)

    async def patch(self, path: str, body: Body, *_: Any, **__: Any) -> Body:
        return self._take("PATCH", path, body)

    async def delete(self, path: str, body: Body, **_: Any) -> Body:
        return self._take("DELETE", path, body)

    async def get(self, path: str, **_: Any) -> Body:
        self._refuse(path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", "not found")
        return self.objects[path]

    def to(self, end: str) -> list[Body]:
        """What was written to paths with this end."""
        return [body for _, path, body in self.written if path.endswith(end)]

    def _take(self, verb: str, path: str, body: Body) -> Body:
        self._refuse(path)
        self.written.append((verb, path, body))
        return {}

    def _refuse(self, path: str) -> None:
        for end, refusal in self.refuse.items():
            if path.endswith(end):
                raise refusal()


class Workshop:
    """Objects go in as watches bring them; decisions are carried out by a writer."""

    def __init__(self, policy: str = "capacity") -> None:
        self.answers = Answers()
        client = cast("Client", self.answers)
        self.leads = True
        self.writer = Writer(lambda: self.leads)
        self.engine = Engine(policy)
        configuration = Configuration(profiles=[Profile("aliquot")])
        self.intake = Intake(client, configuration, policy, lambda: None)
        events = Events(client, self.writer)
        self.pod_status = PodStatus(client, self.writer, lambda: self.intake.pods.shown)
        self.metrics = Metrics()
        self.executor = Executor(
            *(self.engine, client, self.writer, self.pod_status, events, self.metrics),
            *(self.intake.feed.report, lambda: None),
            shown_volumes=self.intake.shown_volumes,
        )
        self.now = 0
        self.intake.feed.connect(self.engine, self.intake.mirror)

    def node(self, name: str, gpus: int = 2) -> None:
        """A node is there."""
        body = manifests.node(name, gpu=str(gpus), pods="100")
        self.intake.objects.put(NODES, msgspec.convert(body, NodeWire))
        self.intake.shown_volumes.nodes[name] = {}
        self.intake.objects.settle()

    def no_node(self, name: str) -> None:
        """A node is there no longer."""
        self.intake.objects.gone(NODES, "", name)
        self.intake.objects.settle()

    def quota(self, team: str, low: int) -> None:
        """A team is guaranteed so many GPUs."""
        self.intake.objects.put(QUOTAS, manifests.quota(f"{team}/q", {"gpu": str(low)}))
        self.intake.objects.settle()

    def claim(self, path: str, volume: str = "") -> None:
        """A claim is there; it is bound to this volume, if one is named."""
        namespace, _, name = path.partition("/")
        annotations = {BIND_COMPLETED: "yes"} if volume else {}
        metadata = {"namespace": namespace, "name": name, "uid": path, "annotations": annotations}
        self.intake.shown_volumes.put(
            CLAIMS, {"metadata": metadata, "spec": {"volumeName": volume}}
        )
        if volume:
            reference = {"namespace": namespace, "name": name, "uid": path}
            self.intake.shown_volumes.put(
                VOLUMES, {"metadata": {"name": volume}, "spec": {"claimRef": reference}}
            )

    def pod(self, name: str, team: str, gpus: int = 1, node: str = "", **status: Any) -> None:
        """A pod is there, like this."""
        self.intake.pods.put(watched_pod(name, team, gpus, node, **status))

    def decide(self, seconds: float = 1.0) -> list[Decision]:
        """A cycle, so many seconds later; all of it is to be written."""
        self.now += int(seconds * SECOND)
        self.settle()
        decisions = self.engine.cycle(self.now)
        self.intake.feed.note_lost(decisions)
        self.executor.execute(decisions)
        return decisions

    def settle(self) -> None:
        """What came of writes goes to the engine, and what follows is to be written."""
        self.executor.explain(self.intake.feed.settle())

    async def write(self) -> None:
        """Make all writes that can be made now; those that are put off wait for `again`."""
        await self.send()
        self.settle()
        await self.send()

    async def send(self) -> None:
        """Make all writes that can be made now; what came of them is not settled."""
        task = asyncio.create_task(self.writer.run())
        async with asyncio.timeout(60):
            while self.writer.waiting:
                await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task.cancel()

    async def again(self, seconds: float = 0.5) -> None:
        """The same, a while later: what was put off is due."""
        await asyncio.sleep(seconds)
        await self.write()


def watched_pod(name: str, team: str, gpus: int = 1, node: str = "", **status: Any) -> PodWire:
    """A pod as it is watched: one that the server has named, dated and given a priority."""
    status = {"phase": "Running" if node else "Pending", **status}
    body = manifests.limited_pod(f"{team}/{name}", gpus, nodeName=node, priority=0, status=status)
    body["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return msgspec.convert(body, PodWire)


Story = Callable[[Workshop], Awaitable[None]]


def play(story: Story, policy: str = "capacity") -> Workshop:
    async def run() -> Workshop:
        shop = Workshop(policy)
        await story(shop)
        return shop

    return asyncio.run(run())


def always(code: int) -> Callable[[], ApiError]:
    return lambda: ApiError(code, "", "not now")


def nominations(shop: Workshop, name: str) -> list[object]:
    """What was said of where room is held for a pod, one after the other."""
    said = (body["status"] for body in shop.answers.to(f"/pods/{name}/status"))
    return [each["nominatedNodeName"] for each in said if "nominatedNodeName" in each]


def lent(shop: Workshop) -> None:
    """Team a is guaranteed two nodes, and team b uses them both."""
    shop.node("n1")
    shop.node("n2")
    shop.quota("a", 4)
    shop.quota("b", 0)
    for number in (1, 2):
        shop.pod(f"x{number}", "b", 2, node=f"n{number}")
