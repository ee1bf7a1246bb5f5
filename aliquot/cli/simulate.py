"""`aliquot simulate`: what would happen to these objects, without a cluster."""

import json

import click
import yaml

from aliquot.cli.skipped import say_what_was_skipped
from aliquot.cli.tables import print_tables
from aliquot.dialects import configuration
from aliquot.dialects.core.times import duration
from aliquot.dialects.policy import resolve
from aliquot.simulation.objects import objects
from aliquot.simulation.outcome import outcome
from aliquot.simulation.simulation import Simulation
from aliquot.validation import inputs

_POLICIES = click.Choice(configuration.POLICIES)
_OUTPUTS = click.Choice(["table", "json", "yaml", "objects"])


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--policy", type=_POLICIES, help="How quotas are shared; auto asks the objects.")
@click.option("--config", metavar="FILE", help="A Configuration with the knobs.")
@click.option("--until", metavar="TIME", help="Stop at this time, such as 2h.")
@click.option("-o", "--output", type=_OUTPUTS, default="table", help="What to print.")
def simulate(
    paths: tuple[str, ...], policy: str | None, config: str | None, until: str | None, output: str
) -> None:
    r"""Run manifests through the engine, in virtual time, and say what happens and why.

    PATH is a file or folder of Kubernetes manifests, or - for standard input.

    Everything exists from the start, unless it is annotated `sim.aliquot.dev/arrival: 30s`; a pod
    annotated `sim.aliquot.dev/duration: 10m` ends. A Timeline changes objects over time.

    \b
    aliquot simulate examples/kep-9/story-1
    kubectl get nodes,pods,elasticquotas -A -o yaml | aliquot simulate -
    """
    settings = inputs.load_configuration(config)
    stop = None if until is None else duration(until, "--until", "")
    given = inputs.load(paths, settings)
    chosen, why = resolve(policy, settings, given.manifests())
    for warning in given.findings:
        click.echo(f"warning: {warning}", err=True)
    for objection in given.pod_conflicts:
        click.echo(f"warning: {objection} (a cluster would refuse it)", err=True)
    say_what_was_skipped(given.skipped)
    simulation = Simulation(given, chosen, configuration.knobs(settings))
    simulation.run(stop)
    if output == "table":
        print_tables(simulation, why)
    elif output == "json":
        click.echo(json.dumps(outcome(simulation), indent=2, ensure_ascii=False))
    elif output == "yaml":
        click.echo(_yaml(outcome(simulation)), nl=False)
    else:
        click.echo("---\n".join(_yaml(body) for body in objects(simulation)), nl=False)


def _yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """YAML without anchors: what repeats is written out."""

    def ignore_aliases(self, data: object) -> bool:
        return True
