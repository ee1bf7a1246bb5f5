"""`aliquot scheduler`: the control plane on a cluster."""

import asyncio
import sys
from functools import partial
from pathlib import Path

import click

from aliquot.cli.commands.daemon import expected
from aliquot.cli.commands.options import logging, reaching
from aliquot.cli.commands.stopping import stopping
from aliquot.cluster.inputs import load_configuration
from aliquot.dialects.configuration import POLICIES
from aliquot.dialects.times import duration
from aliquot.kube import access, logs, plane
from aliquot.kube.plane import control_plane
from aliquot.kube.scheduler import Settings


@click.command()
@reaching
@click.option("--config", metavar="FILE", help="Configuration; see docs/reference.")
@click.option("--policy", type=click.Choice(POLICIES), help="Overrides the configuration.")
@click.option("--dry-run", is_flag=True, help="Decide and log; write nothing.")
@click.option(
    "--namespace", default="aliquot-system", show_default=True, help="Where its Lease is."
)
@click.option("--lease-name", default="aliquot-scheduler", show_default=True)
@click.option("--no-leader-election", is_flag=True, help="Lead, whoever else there is.")
@click.option(
    "--delete-after",
    metavar="DURATION",
    help="Delete a pod whose eviction a budget has refused for so long; default: never.",
)
@click.option("--host", default="0.0.0.0", show_default=True, help="Of probes and metrics.")
@click.option("--health-port", default=8080, show_default=True, type=click.IntRange(0, 65535))
@logging
def scheduler(
    kubeconfig: Path | None,
    context: str | None,
    config: str | None,
    policy: str | None,
    dry_run: bool,
    namespace: str,
    lease_name: str,
    no_leader_election: bool,
    delete_after: str | None,
    host: str,
    health_port: int,
    log_format: logs.Form | None,
    log_level: logs.Level,
) -> None:
    """Schedule the pods of a cluster, and keep its quotas' statuses, until stopped."""
    limit = None
    if delete_after is not None:
        limit = duration(delete_after, "--delete-after", "") / 1e9
    settings = plane.Settings(
        Settings(load_configuration(config), policy, limit, dry_run),
        namespace,
        None if no_leader_election or dry_run else lease_name,
        host=host,
        health_port=health_port,
    )
    reach = partial(access.find, kubeconfig, context)
    reach()
    logs.set_up(log_format or ("console" if sys.stderr.isatty() else "json"), log_level)
    with expected("scheduler"):
        asyncio.run(_run(reach, settings))


async def _run(reach: "partial[access.Access]", settings: plane.Settings) -> None:
    stop = stopping()
    async with control_plane(reach, settings):
        await stop.wait()
