"""`aliquot pause` and `aliquot resume`: brakes on a running control plane."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.choices import PAUSABLE
from aliquot.cli.commands.options import cluster_options, namespace_option

if TYPE_CHECKING:
    from aliquot.kube.api.client import Client

what_argument = click.argument("what", type=click.Choice(PAUSABLE), metavar="evictions")


@click.command()
@what_argument
@click.option(
    "--for", "lasts", metavar="DURATION", help="How long, such as 30m. Default: until resumed."
)
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who see it.")
@namespace_option("The namespace that Aliquot runs in, that of its Lease.")
@cluster_options
def pause(
    what: str,
    lasts: str | None,
    reason: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Evict no pod until evictions are resumed.

    The leader obeys at once, and after a restart too. Pods are bound as before; a pod that could
    only start in place of others waits with the reason EvictionsPaused. What is held stays held;
    evictions that were not sent yet are not sent.

    \b
    Examples:
      aliquot pause evictions --for 30m --reason "storage is being moved"
      aliquot pause evictions --namespace scheduling --context staging
    """
    import time

    from aliquot.dialects.core.times import duration, moment
    from aliquot.kube.api.identity import user_name
    from aliquot.kube.intake.eviction_pause import ANNOTATION, Pause

    until = None
    now = time.time_ns()
    if lasts is not None:
        until = now + duration(lasts, "--for", "")
        if until == now:
            raise click.UsageError("--for must be longer than no time at all")

    async def write(client: "Client") -> str:
        end = "" if until is None else moment(until)
        found = Pause(await user_name(client), moment(now), end, reason)
        await annotate(client, namespace, {ANNOTATION: found.annotation()})
        shown = f" until {end}" if end else "; aliquot resume evictions ends it"
        return f"Evictions are paused {found.words}{shown}"

    click.echo(ask(kubeconfig, context, write))


async def annotate(client: "Client", namespace: str, annotations: dict[str, str | None]) -> object:
    """Set annotations of the namespace that Aliquot runs in; None removes one."""
    from http import HTTPStatus

    from aliquot.errors import ApiError, InputError
    from aliquot.kube.api.resource import NAMESPACES

    try:
        patch = {"metadata": {"annotations": annotations}}
        return await client.patch(NAMESPACES.path(None, namespace), patch)
    except ApiError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        problem = "is not there; --namespace names the one that Aliquot runs in"
        raise InputError(f"namespace {namespace}", "", problem) from None


def ask(
    kubeconfig: Path | None, context: str | None, work: "Callable[[Client], Awaitable[str]]"
) -> str:
    """Do something with the cluster's API, and return what is to be said."""
    import asyncio

    from aliquot.kube.api import access
    from aliquot.kube.api.client import Client

    async def run() -> str:
        async with Client(access.find(kubeconfig, context), connections=1) as client:
            return await work(client)

    return asyncio.run(run())
