"""`aliquot resume`: ends what `aliquot pause` began."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.options import cluster_options, namespace_option
from aliquot.cli.commands.pause import annotate, ask, what_argument

if TYPE_CHECKING:
    from aliquot.kube.api.client import Client


@click.command()
@what_argument
@namespace_option("The namespace that Aliquot runs in, that of its Lease.")
@cluster_options
def resume(what: str, namespace: str, kubeconfig: Path | None, context: str | None) -> None:
    """Evict pods again where that is needed.

    \b
    Examples:
      aliquot resume evictions
      aliquot resume evictions --namespace scheduling --context staging
    """
    from aliquot.kube.intake.eviction_pause import ANNOTATION

    async def write(client: "Client") -> str:
        await annotate(client, namespace, {ANNOTATION: None})
        return "Evictions are resumed"

    click.echo(ask(kubeconfig, context, write))
