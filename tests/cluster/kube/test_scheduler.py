"""A scheduler in this process, on a server in this process: what it does when all goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.dialects.documents import Body
from aliquot.kube import access, scheduler
from aliquot.kube.client import Client
from aliquot.kube.metrics import Metrics
from aliquot.kube.resource import PODS
from aliquot.kube.scheduler import Scheduler
from aliquot.kube.writer import Writer
from aliquot.server import simulated
from aliquot.server.running import Settings, running

SETTINGS = scheduler.Settings(Configuration(profiles=[Profile("aliquot")]))


@asynccontextmanager
async def scheduling(fence: Callable[[], bool]) -> AsyncIterator[tuple[Client, Scheduler]]:
    """A scheduler that always leads, with a writer that asks this fence."""
    nodes = tuple(simulated.nodes("1x8", simulated.MODEL))
    async with (
        running(Settings(nodes=nodes)) as server,
        Client(access.find(server.kubeconfig, None)) as client,
    ):
        writer = Writer(fence)
        made = Scheduler(client, SETTINGS, lambda: True, writer, Metrics(), lambda: None)
        tasks = [asyncio.create_task(each.run()) for each in (made.view, writer, made)]
        try:
            yield client, made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def pod(name: str) -> Body:
    """A pod that asks for nothing."""
    spec = {"schedulerName": "aliquot", "containers": [{"name": "c", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def bound(client: Client, name: str) -> None:
    """Wait until a pod has a node."""

    async def found() -> Body:
        body: Body = await client.get(PODS.path("default", name))
        return body

    async with asyncio.timeout(5):
        while "nodeName" not in (await found())["spec"]:
            await asyncio.sleep(0.02)


def test_what_was_not_written_in_a_moment_without_the_lease_is_decided_again() -> None:
    asked: list[bool] = []

    def lapses_once() -> bool:
        asked.append(True)
        return len(asked) > 1

    async def story() -> None:
        async with scheduling(lapses_once) as (client, _):
            await client.post(PODS.path("default"), pod("p"))
            await bound(client, "p")

    asyncio.run(story())
