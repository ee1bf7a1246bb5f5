"""`aliquot history`: decisions as they were taken."""

from pathlib import Path

import click

from aliquot.cli.commands.options import (
    Question,
    cluster_options,
    namespace_option,
    output_option,
)


@click.command(cls=Question)
@click.argument("of", required=False, metavar="[POD|QUOTA]")
@click.option("--since", metavar="DURATION", help="Only decisions of the last so long, as 1h.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Only the last so many; 0 for all.",
)
@click.option(
    "--from",
    "paths",
    multiple=True,
    metavar="FILE...",
    help="Read decision logs or recordings instead of asking the cluster.",
)
@namespace_option("The namespace that Aliquot runs in, with its Service.")
@cluster_options
@output_option("table", "json")
def history(
    of: str | None,
    since: str | None,
    limit: int,
    paths: tuple[str, ...],
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    output: str,
) -> None:
    """Show who was started, evicted and passed over, and why.

    With the numbers of that moment, from the control plane's decision log, through the API server;
    where that may not be read, from events. POD is namespace/name.

    \b
    Examples:
      aliquot history --since 1h
      aliquot history team-a/train-0
      aliquot history --from run.jsonl -o json
    """
    import time

    from aliquot.cli.drawing.grid import print_drawn
    from aliquot.cli.show import documents
    from aliquot.cli.show.history import drawn
    from aliquot.dialects.core.times import duration
    from aliquot.questions.history import Wanted, read_cluster, read_file
    from aliquot.questions.sources.reach import Reach

    earliest = None if since is None else time.time_ns() - duration(since, "--since", "")
    wanted = Wanted(of or "", earliest, limit)
    if paths and (kubeconfig is not None or context is not None):
        raise click.UsageError("--from asks files: --kubeconfig and --context have no part in it")
    if paths:
        result = read_file(paths, wanted)
    else:
        result = read_cluster(Reach(kubeconfig, context, namespace), wanted)
    if result["note"]:
        click.echo(f"note: {result['note']}", err=True)
    if output == "json":
        click.echo(documents.as_json(result))
    else:
        print_drawn(lambda width: drawn(result, width))
