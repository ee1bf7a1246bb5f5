"""`aliquot compare`: the same input under several policies or configurations."""

from pathlib import Path

import click

from aliquot.cli.commands.choices import POLICIES
from aliquot.cli.commands.options import Question, output_option, report_option, trace_option


@click.command(cls=Question)
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--policy", "policies", metavar="A,B...", help="The policies, between commas.")
@click.option(
    "--config", "files", multiple=True, metavar="FILE...", help="Configurations; may be repeated."
)
@trace_option
@click.option("--until", metavar="TIME", help="Stop at this time, such as 2h.")
@report_option
@output_option("table", "json")
def compare(
    paths: tuple[str, ...],
    policies: str | None,
    files: tuple[str, ...],
    trace: str | None,
    until: str | None,
    report: Path | None,
    output: str,
) -> None:
    """Simulate the same input under several policies, side by side.

    Utilisation, waits by team and by size, fairness (Jain's index of the part of their time that
    pods of each team ran), evictions, the work lost by them, and when all was over. PATH is a file
    or folder of manifests, or a snapshot.

    \b
    Examples:
      aliquot compare examples/nos/fair-share --policy capacity,fair
      aliquot compare cluster.yaml --policy capacity,fair --report report.html
      aliquot compare nodes.yaml --trace csv:jobs.csv --config a.yaml b.yaml
    """
    from aliquot.cli.drawing.grid import print_drawn
    from aliquot.cli.drawing.progress import progress
    from aliquot.cli.show import documents
    from aliquot.cli.show.comparison import drawn
    from aliquot.dialects.core.times import duration
    from aliquot.questions.plays.comparison import measured, play, sides
    from aliquot.questions.plays.lives import Lives
    from aliquot.questions.sources.origin import read_all
    from aliquot.validation.inputs import load_configuration

    named = [each for each in (policies or "").split(",") if each]
    for each in named:
        if each not in POLICIES:
            raise click.UsageError(f"--policy: {each!r} is none of {', '.join(POLICIES)}")
    end = None if until is None else duration(until, "--until", "")
    source = read_all(paths, trace)
    settings = [(Path(file).name, load_configuration(file)) for file in files]
    chosen = sides(source, named, settings)
    plays = []
    for side in chosen:
        with progress(end) as told:
            plays.append(play(side, end, Lives(told=told)))
    names = [each.name for each in chosen]
    found = [{"name": n, **measured(each)} for n, each in zip(names, plays, strict=True)]
    if report is not None:
        from aliquot.cli.report import comparison, page

        words = page.named([*paths, *([trace] if trace else [])])
        page.write(report, comparison.report(names, plays, words))
    if output == "json":
        click.echo(documents.as_json({"sides": found}))
    else:
        print_drawn(lambda width: drawn(found, width))
