"""`aliquot top`: what uses and borrows most, and what is free where."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.choices import SORTS, TOPICS
from aliquot.cli.commands.options import (
    Question,
    output_option,
    source_options,
    watch_option,
)

if TYPE_CHECKING:
    from aliquot.questions.sources.origin import Origin


@click.command(cls=Question)
@click.argument("what", type=click.Choice(TOPICS), metavar="|".join(TOPICS))
@click.option(
    "--sort", type=click.Choice(SORTS), default=SORTS[0], help="By what quotas are sorted."
)
@watch_option
@output_option("table", "json")
@source_options
def top(origin: "Origin", what: str, sort: str, output: str, watch: bool) -> None:
    """Show the quotas, pods, nodes or GPUs that are used most.

    Rows are sorted by the largest part of the cluster, or of the node, in any resource.

    \b
    Examples:
      aliquot top quotas --sort borrowed
      aliquot top pods --watch
      aliquot top gpus --from cluster.json.gz -o json
    """
    from functools import partial

    from aliquot.cli.show import overview as drawings
    from aliquot.cli.show.answer import Ask, listed, show
    from aliquot.questions import overview

    questions: dict[str, Ask] = {
        "quotas": partial(overview.top_quotas, by=sort),
        "pods": overview.top_pods,
        "nodes": overview.top_nodes,
        "gpus": overview.top_gpus,
    }
    draws = {
        "quotas": drawings.top_quotas,
        "pods": drawings.top_pods,
        "nodes": drawings.top_nodes,
        "gpus": drawings.top_gpus,
    }
    show(origin, output, watch, questions[what], listed(draws[what]))
