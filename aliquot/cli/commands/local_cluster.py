"""The cluster of `aliquot up`: API server, simulated nodes, webhook and control plane, one process.

Also the demo that plays on it. `up` imports this module only when it runs: it needs all of the
server and of the control plane.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from aliquot.cli.show.live_view import LiveView
from aliquot.cluster import files
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.documents import Body
from aliquot.errors import InputError
from aliquot.kube import access, plane, scheduler
from aliquot.kube.client import Client
from aliquot.kube.plane import Plane, control_plane
from aliquot.kube.resource import NAMESPACES
from aliquot.kube.webhook import running as webhook
from aliquot.server import demo, simulated
from aliquot.server.running import Server, Settings, running


def plane_settings(
    configuration: Configuration, policy: str | None, host: str, health_port: int | None
) -> plane.Settings:
    """The settings of a control plane that is the only one: it needs no Lease."""
    deciding = scheduler.Settings(configuration, policy)
    return plane.Settings(deciding, lease=None, host=host, health_port=health_port)


def simulated_nodes(nodes: str, gpu_model: str) -> list[Body]:
    """Nodes by count and GPUs each, such as 8x8, or the Nodes of a file or folder."""
    if not Path(nodes).exists():
        return simulated.nodes(nodes, gpu_model)
    found = [each for each in files.parse(nodes) if each.body.get("kind") == "Node"]
    if not found:
        raise InputError(nodes, "", "holds no Nodes")
    return [each.body for each in found]


@asynccontextmanager
async def local_cluster(
    settings: Settings, own: plane.Settings | None, with_demo: bool
) -> AsyncIterator[None]:
    """The API server, and unless `own` is None the webhook and the control plane, then the demo."""
    async with running(settings) as server, AsyncExitStack() as stack:
        reach = partial(access.find, server.kubeconfig)
        if own is not None:
            await stack.enter_async_context(_admission(reach, own))
            made = await stack.enter_async_context(control_plane(reach, own))
        click.echo(f"kubeconfig: {server.kubeconfig}")
        click.echo(f"url: {server.url}")
        if with_demo:
            await stack.enter_async_context(_demo(made, reach, server))
        yield


@asynccontextmanager
async def _admission(reach: "partial[access.Access]", own: plane.Settings) -> AsyncIterator[None]:
    """The admission webhook, with the Configuration and the policy of the control plane."""
    settings = webhook.Settings(
        own.scheduler.configuration, own.scheduler.policy, own.namespace, url=""
    )
    async with Client(reach(), connections=4) as client:
        await demo.make(client, NAMESPACES, demo.namespace(own.namespace))
        async with webhook.webhook(client, settings) as started:
            await started.ready.wait()
            yield


@asynccontextmanager
async def _demo(
    made: Plane, reach: "partial[access.Access]", server: Server
) -> AsyncIterator[None]:
    """Play the demo, with the live view where stdout is a terminal."""
    look = f"KUBECONFIG={server.kubeconfig} kubectl get eq,pods -A -w"
    console = Console(highlight=False)
    async with Client(reach(), connections=2) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(demo.play(client))]
        if console.is_terminal:
            headline = f"{server.url}   look inside: {look}   stop: Ctrl-C"
            tasks.append(group.create_task(LiveView(made, headline).run(console)))
        else:
            click.echo(f"look inside: {look}")
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
