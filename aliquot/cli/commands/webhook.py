"""`aliquot webhook`: the admission webhook."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.choices import (
    CERTIFICATE,
    CONFIGURATION,
    WEBHOOK,
    LogFormat,
    LogLevel,
)
from aliquot.cli.commands.options import (
    FILE,
    cluster_options,
    config_option,
    health_port_option,
    host_option,
    log_options,
    metrics_auth_option,
    namespace_option,
    policy_option,
    port_option,
)
from aliquot.errors import InputError

if TYPE_CHECKING:
    from aliquot.kube.api.access import Access
    from aliquot.kube.webhook.app import Settings


@click.command()
@cluster_options
@config_option
@policy_option("The policy of all profiles; overrides the Configuration.")
@namespace_option("The namespace that it runs in.")
@host_option("0.0.0.0")
@port_option(9443)
@health_port_option(8080)
@metrics_auth_option
@click.option(
    "--service",
    default=WEBHOOK,
    metavar="NAME",
    help="The Service by which API servers reach it.",
)
@click.option(
    "--secret",
    default=CERTIFICATE,
    metavar="NAME",
    help="The Secret in which it keeps its certificate.",
)
@click.option(
    "--configuration",
    default=CONFIGURATION,
    metavar="NAME",
    help="The webhook configurations into which it writes its CA.",
)
@click.option(
    "--url",
    metavar="URL",
    help="Write the webhook configurations, with this address instead of the Service.",
)
@click.option(
    "--cert-file",
    type=FILE,
    help="Use this certificate, such as cert-manager's; read again when it changes.",
)
@click.option("--key-file", type=FILE, help="The private key of --cert-file.")
@log_options
def webhook(
    kubeconfig: Path | None,
    context: str | None,
    config: str | None,
    policy: str | None,
    namespace: str,
    host: str,
    port: int,
    health_port: int,
    metrics_auth: bool,
    service: str,
    secret: str,
    configuration: str,
    url: str | None,
    cert_file: Path | None,
    key_file: Path | None,
    log_format: LogFormat | None,
    log_level: LogLevel,
) -> None:
    """Serve admission requests for quotas, queues, gangs and pods.

    Refuses what `aliquot validate` would call an error, before the API server stores it; runs until
    SIGTERM or Ctrl-C.

    \b
    Examples:
      aliquot webhook --config aliquot.yaml
      aliquot webhook --cert-file tls.crt --key-file tls.key
      aliquot webhook --context dev --url https://192.0.2.1:9443
    """
    from aliquot.cli.commands import daemon
    from aliquot.kube.api import access
    from aliquot.kube.webhook.app import Settings
    from aliquot.validation.inputs import load_configuration

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
        metrics_access=access.find(kubeconfig, context) if metrics_auth else None,
        files=(cert_file, key_file) if cert_file is not None and key_file is not None else None,
    )
    found = access.find(kubeconfig, context)
    daemon.set_up_logs(log_format, log_level)
    daemon.serve("webhook", _service(found, settings))


@asynccontextmanager
async def _service(found: "Access", settings: "Settings") -> AsyncIterator[None]:
    from aliquot.kube.api.client import Client
    from aliquot.kube.webhook import app as running

    async with Client(found) as client, running.webhook(client, settings):
        yield
