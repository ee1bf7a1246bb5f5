"""`aliquot dashboard`: the page in the browser."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.choices import LogLevel
from aliquot.cli.commands.options import (
    Question,
    host_option,
    log_level_option,
    port_option,
    source_options,
)

if TYPE_CHECKING:
    from aliquot.questions.sources.origin import Origin


@click.command(cls=Question)
@host_option("127.0.0.1", "The address to listen on; others than this machine's want --auth.")
@port_option(8090, "The port to listen on; 0 for any free one.")
@click.option(
    "--auth",
    type=click.Choice(["none", "kubernetes"]),
    default="none",
    help="Show everything, or to each token of the cluster what it may list.",
)
@log_level_option("warning")
@source_options
def dashboard(origin: "Origin", host: str, port: int, auth: str, log_level: LogLevel) -> None:
    """Show a cluster in the browser: quotas, GPUs, waiting pods.

    Reads only: nothing is ever written to the cluster. Runs until Ctrl-C.

    \b
    Examples:
      aliquot dashboard
      aliquot dashboard --from cluster.json.gz
      aliquot dashboard --host 0.0.0.0 --auth kubernetes
    """
    from aliquot.cli.commands import daemon
    from aliquot.cli.show.dashboard import shown_dashboard

    if origin.paths and auth != "none":
        raise click.UsageError("--auth kubernetes asks a cluster: not with --from")
    daemon.set_up_logs("console", log_level)
    daemon.serve("dashboard", shown_dashboard(origin, host, port, auth == "kubernetes"))
