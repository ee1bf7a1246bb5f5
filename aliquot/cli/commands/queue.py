"""`aliquot queue`: which pods wait, in which order, and why."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.options import (
    Question,
    output_option,
    source_options,
    watch_option,
)

if TYPE_CHECKING:
    from aliquot.questions.sources.origin import Origin


@click.command(cls=Question)
@click.argument("quota", required=False)
@watch_option
@output_option("table", "json")
@source_options
def queue(origin: "Origin", quota: str | None, output: str, watch: bool) -> None:
    """Show the pods that wait, in their order, and why.

    QUOTA is the name of a quota or queue; without it, all that wait are shown.

    \b
    Examples:
      aliquot queue
      aliquot queue team-a/gpus
      aliquot queue --from cluster.json.gz -o json
    """
    from functools import partial

    from aliquot.cli.show import overview as drawings
    from aliquot.cli.show.answer import listed, show
    from aliquot.questions.queue import queue as ask

    show(origin, output, watch, partial(ask, quota=quota), listed(drawings.queue))
