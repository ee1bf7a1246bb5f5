"""`aliquot up`: a Kubernetes API server with simulated nodes, in one process."""

import asyncio
import signal
import sqlite3
from pathlib import Path

import click

from aliquot.cluster import files
from aliquot.dialects.documents import Body
from aliquot.errors import InputError
from aliquot.server import simulated
from aliquot.server.running import Settings, running


@click.command()
@click.option("--no-scheduler", is_flag=True, help="Leave pods for another scheduler to bind.")
@click.option("--no-controllers", is_flag=True, help="Leave objects alone: the bare API server.")
@click.option(
    "--nodes",
    default="8x8",
    metavar="8x8|PATH",
    help="Simulated nodes by GPUs each, or their manifests; 0 for none.",
)
@click.option("--gpu-model", default=simulated.MODEL, show_default=True, help="Their GPUs.")
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where to write it.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Keep objects here.")
def up(
    no_scheduler: bool,
    no_controllers: bool,
    nodes: str,
    gpu_model: str,
    host: str,
    port: int,
    kubeconfig: Path | None,
    data_dir: Path | None,
) -> None:
    """Start a Kubernetes API server with simulated nodes, and stop it on Ctrl-C."""
    given = tuple(_nodes(nodes, gpu_model))
    if not no_scheduler:
        raise click.UsageError("the scheduler cannot run here yet: add --no-scheduler")
    settings = Settings(data_dir, kubeconfig, host, port, not no_controllers, given)
    try:
        asyncio.run(_run(settings))
    except (OSError, sqlite3.Error) as error:
        raise InputError("up", "", getattr(error, "strerror", None) or str(error)) from None


def _nodes(said: str, model: str) -> list[Body]:
    """Nodes by number, or those of manifests."""
    if not Path(said).exists():
        return simulated.nodes(said, model)
    found = [each for each in files.parse(said) if each.body.get("kind") == "Node"]
    if not found:
        raise InputError(said, "", "holds no Nodes")
    return [each.body for each in found]


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(settings) as server:
        click.echo(f"kubeconfig: {server.kubeconfig}")
        click.echo(f"url: {server.url}")
        await stop.wait()
