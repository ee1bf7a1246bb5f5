"""`aliquot webhook`: judges writes before an API server keeps them."""

import asyncio
import sys
from pathlib import Path

import click

from aliquot.cli.commands.daemon import expected
from aliquot.cli.commands.options import logging, reaching
from aliquot.cli.commands.stopping import stopping
from aliquot.cluster.inputs import load_configuration
from aliquot.dialects.configuration import POLICIES
from aliquot.errors import InputError
from aliquot.kube import access, logs
from aliquot.kube.client import Client
from aliquot.kube.install.installation import CERTIFICATE, CONFIGURATION, NAMESPACE, WEBHOOK
from aliquot.kube.webhook.running import Settings
from aliquot.kube.webhook.running import webhook as running_webhook

_PORT = click.IntRange(0, 65535)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@reaching
@click.option("--config", metavar="FILE", help="Configuration; see docs/reference.")
@click.option("--policy", type=click.Choice(POLICIES), help="Overrides the configuration.")
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Where it runs.")
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to listen on.")
@click.option("--port", default=9443, show_default=True, type=_PORT)
@click.option("--health-port", default=8080, show_default=True, type=_PORT)
@click.option("--service", default=WEBHOOK, show_default=True, help="What it is reached by.")
@click.option("--secret", default=CERTIFICATE, show_default=True, help="Keeps its certificate.")
@click.option(
    "--configuration",
    default=CONFIGURATION,
    show_default=True,
    help="The webhook configurations that are to trust it.",
)
@click.option("--url", help="Write those, with this address instead of the Service.")
@click.option("--cert-file", type=_FILE, help="A certificate that somebody else looks after.")
@click.option("--key-file", type=_FILE, help="Its key.")
@logging
def webhook(
    kubeconfig: Path | None,
    context: str | None,
    config: str | None,
    policy: str | None,
    namespace: str,
    host: str,
    port: int,
    health_port: int,
    service: str,
    secret: str,
    configuration: str,
    url: str | None,
    cert_file: Path | None,
    key_file: Path | None,
    log_format: logs.Form | None,
    log_level: logs.Level,
) -> None:
    """Judge quotas, queues, gangs and pods before an API server keeps them, until stopped."""
    if (cert_file is None) != (key_file is None):
        raise click.UsageError("--cert-file and --key-file go together")
    if url is not None and not url.startswith("https://"):
        raise InputError("--url", "", f"{url!r} must begin with https://")
    settings = Settings(
        configuration=load_configuration(config),
        policy=None if policy == "auto" else policy,
        namespace=namespace,
        host=host,
        port=port,
        service=service,
        secret=secret,
        registered=configuration,
        url=url,
        health_host=host,
        health_port=health_port,
        files=(cert_file, key_file) if cert_file is not None and key_file is not None else None,
    )
    found = access.find(kubeconfig, context)
    logs.set_up(log_format or ("console" if sys.stderr.isatty() else "json"), log_level)
    with expected("webhook"):
        asyncio.run(_run(found, settings))


async def _run(found: access.Access, settings: Settings) -> None:
    stop = stopping()
    async with Client(found) as client, running_webhook(client, settings):
        await stop.wait()
