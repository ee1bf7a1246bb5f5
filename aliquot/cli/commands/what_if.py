"""`aliquot what-if`: what a change would lead to, before it is made."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.options import Question, output_option, report_option, source_options

if TYPE_CHECKING:
    from pathlib import Path

    from aliquot.json import Body
    from aliquot.questions.sources.origin import Origin
    from aliquot.questions.sources.source import Source
    from aliquot.questions.what_if import Hypothesis


@click.command("what-if", cls=Question)
@click.option(
    "-f",
    "changes",
    multiple=True,
    metavar="CHANGE...",
    help="Changed or new objects, laid over those of --from by kind, namespace and name.",
)
@click.option("--delete", multiple=True, metavar="KIND/NAMESPACE/NAME", help="Delete this object.")
@click.option("--add-nodes", type=click.IntRange(0, 10_000), default=0, help="Add so many nodes.")
@click.option("--like", metavar="NODE", help="The node that added nodes are like.")
@click.option("--drain", multiple=True, metavar="NODE", help="Drain this node.")
@click.option(
    "--defragment",
    metavar="NAMESPACE/NAME",
    help="Say which running pods would have to move, and where, so that this waiting pod starts.",
)
@click.option("--until", metavar="TIME", help="Stop at this time, such as 2h.")
@report_option
@output_option("table", "json")
@source_options
def what_if(
    origin: "Origin",
    changes: tuple[str, ...],
    delete: tuple[str, ...],
    add_nodes: int,
    like: str | None,
    drain: tuple[str, ...],
    defragment: str | None,
    until: str | None,
    report: "Path | None",
    output: str,
) -> None:
    """Say who would start, and who would go, after a change.

    Both the objects as they are and the changed ones are played until nothing more happens, in
    virtual time. Nothing is written.

    \b
    Examples:
      aliquot what-if --from cluster.yaml -f new-quota.yaml
      aliquot what-if --from cluster.yaml --add-nodes 2 --like gpu-node-1
      aliquot what-if --from dump.json --drain gpu-node-1 --delete Queue/research
      aliquot what-if --from dump.json --defragment vision/train
    """
    from aliquot.cli.show import documents
    from aliquot.cli.show.source import print_notes
    from aliquot.cli.show.what_if import print_what_if
    from aliquot.collector import paused_collector
    from aliquot.dialects.core.times import duration
    from aliquot.questions.what_if import Hypothesis, consequences
    from aliquot.validation import files

    if defragment is not None:
        if changes or delete or add_nodes or like or drain or until or report is not None:
            raise click.UsageError("--defragment asks about the cluster as it is: no other change")
        _defragment(origin, defragment, output)
        return
    end = None if until is None else duration(until, "--until", "")
    changed = [each for path in changes for each in files.parse(path)]
    hypothesis = Hypothesis(changed, delete, add_nodes, like, drain)
    with paused_collector(tidy=False):
        source = origin.read()
    print_notes(source)
    answer = consequences(source, hypothesis, end)
    if report is not None:
        _report(report, answer, source, hypothesis, end, changes)
    if output == "json":
        click.echo(documents.as_json(answer))
    else:
        print_what_if(answer)


def _defragment(origin: "Origin", path: str, output: str) -> None:
    """Say which pods would have to move."""
    from aliquot.cli.show import documents
    from aliquot.cli.show.source import print_notes
    from aliquot.cli.show.what_if import print_moves
    from aliquot.questions.defragment import defragment

    source = origin.read()
    print_notes(source)
    answer = defragment(source, path)
    if output == "json":
        click.echo(documents.as_json(answer))
    else:
        print_moves(answer)


def _report(
    file: "Path",
    answer: "Body",
    source: "Source",
    hypothesis: "Hypothesis",
    end: int | None,
    changes: tuple[str, ...],
) -> None:
    """Write the report; for it, both plays are followed from beginning to end."""
    from aliquot.cli.drawing.progress import progress
    from aliquot.cli.report import page
    from aliquot.cli.report.what_if import report
    from aliquot.questions.plays.comparison import Side, play
    from aliquot.questions.plays.lives import Lives

    changed, _ = hypothesis.of(source.documents)
    plays = []
    for side in (Side("before", source), Side("after", replace(source, documents=changed))):
        with progress(end) as told:
            plays.append(play(side, end, Lives(told=told)))
    words = hypothesis.words([page.named([each]) for each in changes])
    page.write(file, report(answer, plays, page.named([source.name]), words))
