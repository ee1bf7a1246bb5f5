"""`aliquot generate`: workloads that are made up, as manifests."""

import click

from aliquot.cli.commands.choices import WORKLOADS


@click.command()
@click.argument("workload", type=click.Choice(WORKLOADS), metavar="|".join(WORKLOADS))
@click.option("--part", default=1.0, type=click.FloatRange(0, 1), help="baseline: so much of it.")
@click.option("--jobs", default=500, type=click.IntRange(1, 100_000), help="poisson: Jobs.")
@click.option(
    "--per-hour",
    default=60.0,
    type=click.FloatRange(0, min_open=True),
    metavar="RATE",
    help="poisson: arrivals an hour.",
)
@click.option("--teams", default=4, type=click.IntRange(1, 1_000), help="poisson: teams.")
@click.option(
    "--gpus", default="0:1,60:1,90:4,100:8", metavar="QUANTILES", help="poisson: GPUs of a Job."
)
@click.option(
    "--minutes",
    default="0:1,50:20,90:240,100:1440",
    metavar="QUANTILES",
    help="poisson: how long a Job runs.",
)
@click.option("--nodes", default="8x8", metavar="NxGPUS", help="poisson: nodes, GPUs of each.")
@click.option("--seed", default=1, type=int, help="poisson: the same seed, the same file.")
def generate(
    workload: str,
    part: float,
    jobs: int,
    per_hour: float,
    teams: int,
    gpus: str,
    minutes: str,
    nodes: str,
    seed: int,
) -> None:
    """Print a made-up workload as a JSON list of manifests.

    baseline is Kueue's performance test: 5 cohorts of 6 queues, 15,000 Jobs of three sizes. poisson
    has Jobs that arrive at random; QUANTILES such as 50:1,90:4,100:8 say how sizes are spread.

    \b
    Examples:
      aliquot generate baseline > baseline.json
      aliquot generate poisson --jobs 200 --teams 3 --seed 7 > poisson.json
    """
    from aliquot.cli.show import documents
    from aliquot.errors import InputError
    from aliquot.questions.workloads import generators

    if workload == "baseline":
        bodies = list(generators.baseline(part))
    else:
        count, _, cards = nodes.partition("x")
        if not (count.isdecimal() and cards.isdecimal() and int(count) <= 10_000):
            raise InputError("--nodes", "", f"{nodes!r:.40} is not nodes and GPUs, such as 8x8")
        wanted = generators.Poisson(
            *(jobs, per_hour, teams, generators.quantiles(gpus, "--gpus")),
            *(generators.quantiles(minutes, "--minutes"), int(count), int(cards), seed),
        )
        bodies = list(generators.poisson(wanted))
    click.echo(documents.as_json({"apiVersion": "v1", "kind": "List", "items": bodies}))
