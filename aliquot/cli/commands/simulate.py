"""`aliquot simulate`: what would happen to these objects, without a cluster."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.options import (
    FILE,
    config_option,
    optional_paths,
    output_option,
    policy_option,
    report_option,
    trace_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aliquot.simulation.simulation import Simulation


@click.command()
@optional_paths
@policy_option("The policy; auto chooses it by the kinds of quotas. Default: the Configuration's.")
@config_option
@trace_option
@click.option("--until", metavar="TIME", help="Stop at this time, such as 2h.")
@click.option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Write what the engine was told and decided: for aliquot history and aliquot replay.",
)
@report_option
@output_option("table", "json", "yaml", "objects")
def simulate(
    paths: tuple[str, ...],
    policy: str | None,
    config: str | None,
    trace: str | None,
    until: str | None,
    record: "Path | None",
    report: "Path | None",
    output: str,
) -> None:
    """Simulate how manifests are scheduled, and say why.

    PATH is a file or folder of Kubernetes manifests, or - for standard input.

    All objects exist from the start, in virtual time, except those annotated with
    sim.aliquot.dev/arrival, such as 30s. A pod annotated with sim.aliquot.dev/duration, such as
    10m, ends after it. A Timeline creates, changes and deletes objects.

    \b
    Examples:
      aliquot simulate examples/kep-9/story-1
      aliquot simulate quotas/ pods/ --policy fair --until 2h -o json
      aliquot simulate cluster.yaml --report report.html
      kubectl get nodes,pods,elasticquotas -A -o yaml | aliquot simulate -
    """
    from aliquot.cli.drawing.progress import progress
    from aliquot.cli.show import documents
    from aliquot.cli.show.findings import print_skipped, print_warnings
    from aliquot.cli.show.recording import recording_engine
    from aliquot.cli.show.simulation import print_tables
    from aliquot.dialects.configuration import knobs
    from aliquot.dialects.core.times import duration
    from aliquot.dialects.policy import resolve
    from aliquot.simulation.objects import objects
    from aliquot.simulation.outcome import outcome
    from aliquot.simulation.simulation import Simulation
    from aliquot.validation import inputs

    settings = inputs.load_configuration(config)
    end = None if until is None else duration(until, "--until", "")
    if trace is None:
        if not paths:
            raise click.UsageError("Missing argument 'PATH...'.")
        loaded = inputs.load(paths, settings, policy)
    else:
        from aliquot.questions.sources.origin import read_all

        loaded = inputs.collect(read_all(paths, trace).documents, settings, policy)
    chosen, why = resolve(policy, settings, loaded.manifests())
    print_warnings(loaded)
    print_skipped(loaded.skipped)
    with recording_engine(record) as make_engine:
        simulation = Simulation(loaded, chosen, knobs(settings), make_engine)
        with progress(end) as told:
            if report is None:
                simulation.passed = told
                simulation.run(end)
            else:
                _play_and_report(
                    simulation, end, told, report, [*paths, *([trace] if trace else [])]
                )
    if output == "table":
        print_tables(simulation, why)
    elif output == "json":
        click.echo(documents.as_json(outcome(simulation)))
    elif output == "yaml":
        click.echo(documents.as_yaml(outcome(simulation)), nl=False)
    else:
        listed = (documents.as_yaml(body) for body in objects(simulation))
        click.echo("---\n".join(listed), nl=False)


def _play_and_report(
    simulation: "Simulation",
    end: int | None,
    told: "Callable[[int], None]",
    file: "Path",
    sources: list[str],
) -> None:
    from aliquot.cli.report.page import named, write
    from aliquot.cli.report.simulation import report
    from aliquot.questions.plays.comparison import played
    from aliquot.questions.plays.lives import Lives

    lives = Lives(told=told, sampled=True)
    lives.follow(simulation)
    write(file, report(played(simulation, lives, end), named(sources)))
