"""`aliquot simulate`: what would happen to these objects, without a cluster."""

import click

from aliquot.cli.commands.options import (
    config_option,
    output_option,
    paths_argument,
    policy_option,
)


@click.command()
@paths_argument
@policy_option("The policy; auto chooses it by the kinds of quotas. Default: the Configuration's.")
@config_option
@click.option("--until", metavar="TIME", help="Stop at this time, such as 2h.")
@output_option("table", "json", "yaml", "objects")
def simulate(
    paths: tuple[str, ...], policy: str | None, config: str | None, until: str | None, output: str
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
      kubectl get nodes,pods,elasticquotas -A -o yaml | aliquot simulate -
    """
    from aliquot.cli.show import documents
    from aliquot.cli.show.findings import print_skipped, print_warnings
    from aliquot.cli.show.progress import progress
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
    loaded = inputs.load(paths, settings, policy)
    chosen, why = resolve(policy, settings, loaded.manifests())
    print_warnings(loaded)
    print_skipped(loaded.skipped)
    simulation = Simulation(loaded, chosen, knobs(settings))
    with progress(end) as simulation.passed:
        simulation.run(end)
    if output == "table":
        print_tables(simulation, why)
    elif output == "json":
        click.echo(documents.as_json(outcome(simulation)))
    elif output == "yaml":
        click.echo(documents.as_yaml(outcome(simulation)), nl=False)
    else:
        listed = (documents.as_yaml(body) for body in objects(simulation))
        click.echo("---\n".join(listed), nl=False)
