"""`aliquot tree`: quotas as a tree, with bars."""

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
@watch_option
@output_option("table", "json")
@source_options
def tree(origin: "Origin", output: str, watch: bool) -> None:
    """Show the quotas as a tree: what each has, uses and borrows.

    Of the live cluster, or of the files that --from names. Of manifests, after all has started that
    can start at once.

    \b
    Examples:
      aliquot tree
      aliquot tree --watch --context prod
      aliquot tree --from examples/koordinator/tree -o json
    """
    from aliquot.cli.show import overview as drawings
    from aliquot.cli.show.answer import show
    from aliquot.questions import overview

    show(origin, output, watch, overview.tree, drawings.tree)
