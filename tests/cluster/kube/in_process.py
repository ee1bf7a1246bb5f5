"""A scheduler and its operator in this process, on a server in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.control import scheduler
from aliquot.kube.control.operator import Operator
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.execution.writer import Writer
from aliquot.kube.observe.metrics import Metrics
from aliquot.server.app import Settings, running
from aliquot.server.controllers import simulated_nodes

SETTINGS = scheduler.Settings(Configuration(profiles=[Profile("aliquot")]))


@asynccontextmanager
async def scheduling(
    fence: Callable[[], bool] = lambda: True,
) -> AsyncIterator[tuple[Client, Scheduler]]:
    """A scheduler that always leads, and its operator, with a writer that asks this fence."""
    nodes = tuple(simulated_nodes.nodes("1x8", simulated_nodes.MODEL))
    async with (
        running(Settings(nodes=nodes)) as server,
        Client(access.find(server.kubeconfig, None)) as client,
    ):
        writer, metrics = Writer(fence), Metrics()
        made = Scheduler(client, SETTINGS, lambda: True, writer, metrics, lambda: None)
        operator = Operator(client, writer, made, metrics)
        tasks = [asyncio.create_task(each.run()) for each in (made.intake, writer, made, operator)]
        try:
            yield client, made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def shows(client: Client, path: str, wanted: Callable[[Body], bool]) -> Body:
    """An object, as soon as it is as wanted."""
    async with asyncio.timeout(60):
        while True:
            found: Body = await client.get(path)
            if wanted(found):
                return found
            await asyncio.sleep(0.02)
