"""`aliquot up`: a Kubernetes API server, simulated nodes and the control plane, in one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from aliquot.cli.failures import expected
from aliquot.cli.live import Watching
from aliquot.cli.stopping import stopping
from aliquot.dialects.configuration import POLICIES, Configuration
from aliquot.dialects.core.documents import Body
from aliquot.errors import InputError
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NAMESPACES
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control import scheduler
from aliquot.kube.control.control_plane import ControlPlane, control_plane
from aliquot.kube.observe import logs
from aliquot.kube.webhook import app as webhook
from aliquot.local import demo
from aliquot.server.app import Server, Settings, running
from aliquot.server.controllers import simulated_nodes
from aliquot.validation import files
from aliquot.validation.inputs import load_configuration


@click.command()
@click.option("--no-scheduler", is_flag=True, help="Leave pods for another scheduler to bind.")
@click.option("--no-controllers", is_flag=True, help="Leave objects alone: the bare API server.")
@click.option("--demo", "demonstrate", is_flag=True, help="Three teams that share the cluster.")
@click.option(
    "--nodes",
    default=demo.NODES,
    metavar="8x8|PATH",
    help="Simulated nodes by GPUs each, or their manifests; 0 for none.",
)
@click.option("--gpu-model", default=simulated_nodes.MODEL, show_default=True, help="Their GPUs.")
@click.option("--config", metavar="FILE", help="Configuration of the control plane.")
@click.option("--policy", type=click.Choice(POLICIES), help="Overrides the configuration.")
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option(
    "--health-port", type=click.IntRange(0, 65535), help="Of probes and metrics; default: none."
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where to write it.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Keep objects here.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Of the control plane, to stderr.",
)
def up(
    no_scheduler: bool,
    no_controllers: bool,
    demonstrate: bool,
    nodes: str,
    gpu_model: str,
    config: str | None,
    policy: str | None,
    host: str,
    port: int,
    health_port: int | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    log_level: logs.Level,
) -> None:
    """Start a cluster of simulated nodes with everything that Aliquot runs; stop it on Ctrl-C."""
    given = tuple(_nodes(nodes, gpu_model))
    if demonstrate and (no_scheduler or no_controllers):
        raise click.UsageError("--demo needs the scheduler and the controllers")
    server = Settings(data_dir, kubeconfig, host, port, not no_controllers, given)
    own = None
    if not no_scheduler:
        own = _settings(load_configuration(config), policy, host, health_port)
    logs.set_up("console", log_level)
    with expected("up"):
        asyncio.run(_run(server, own, demonstrate))


def _settings(
    configuration: Configuration, policy: str | None, host: str, health_port: int | None
) -> plane.Settings:
    """The control plane as on any cluster, but that there is only one."""
    deciding = scheduler.Settings(configuration, policy)
    return plane.Settings(deciding, lease=None, host=host, health_port=health_port)


def _nodes(said: str, model: str) -> list[Body]:
    """Nodes by number, or those of manifests."""
    if not Path(said).exists():
        return simulated_nodes.nodes(said, model)
    found = [each for each in files.parse(said) if each.body.get("kind") == "Node"]
    if not found:
        raise InputError(said, "", "holds no Nodes")
    return [each.body for each in found]


async def _run(settings: Settings, own: plane.Settings | None, demonstrate: bool) -> None:
    stop = stopping()
    async with running(settings) as server, AsyncExitStack() as stack:
        reach = partial(access.find, server.kubeconfig)
        if own is not None:
            await stack.enter_async_context(_admission(reach, own))
            made = await stack.enter_async_context(control_plane(reach, own))
        click.echo(f"kubeconfig: {server.kubeconfig}")
        click.echo(f"url: {server.url}")
        if demonstrate:
            await stack.enter_async_context(_demonstration(made, reach, server))
        await stop.wait()


@asynccontextmanager
async def _admission(reach: "partial[access.Access]", own: plane.Settings) -> AsyncIterator[None]:
    """Judge what is written, by the same settings."""
    settings = webhook.Settings(
        own.scheduler.configuration, own.scheduler.policy, own.namespace, url=""
    )
    async with Client(reach(), connections=4) as client:
        await demo.make(client, NAMESPACES, demo.namespace(own.namespace))
        async with webhook.webhook(client, settings) as judging:
            await judging.ready.wait()
            yield


@asynccontextmanager
async def _demonstration(
    made: ControlPlane, reach: "partial[access.Access]", server: Server
) -> AsyncIterator[None]:
    """Let the demo play, and show it where there is a terminal to show it on."""
    look = f"KUBECONFIG={server.kubeconfig} kubectl get eq,pods -A -w"
    console = Console(highlight=False)
    async with Client(reach(), connections=2) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(demo.play(client))]
        if console.is_terminal:
            words = f"{server.url}   look inside: {look}   stop: Ctrl-C"
            tasks.append(group.create_task(Watching(made, words).run(console)))
        else:
            click.echo(f"look inside: {look}")
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
