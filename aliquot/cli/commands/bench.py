"""`aliquot bench`: the performance budgets, measured on this machine."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aliquot.cli.commands.choices import (
    BENCHMARKS,
    CLUSTER_NODES,
    CLUSTER_PARTS,
    CLUSTER_PODS,
    CLUSTER_PODS_LISTED,
    PACKING_SEEDS,
    SERVER_KINDS,
)
from aliquot.cli.commands.options import output_option

if TYPE_CHECKING:
    from aliquot.bench.figure import Figure

_CLUSTER = "cluster"
_BURST = "reclaim-burst"
_KUEUE = "kueue"
_PACKING = "packing"
_OPTIONS = {
    _CLUSTER: ("nodes", "pods", "pods_listed", "kube_scheduler", "part"),
    _BURST: ("nodes", "server"),
    _KUEUE: ("scale", "server"),
    _PACKING: ("trace", "seeds"),
}
"""Which benchmarks take which options."""
_NAMES = [*dict.fromkeys((*BENCHMARKS, *_OPTIONS)), "all"]
_MOST_NODES = 20_000
"""Four times the 5,000 nodes that Kubernetes supports; a larger number is taken for a mistake."""


class _Name(click.Argument):
    """The name of a benchmark. The usage line says NAME; error messages list the names."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["NAME"]


def _counts(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Numbers with commas between them, such as 500,5000."""
    words = value.split(",")
    if not all(word.isdecimal() and 0 < int(word) <= _MOST_NODES for word in words):
        raise click.BadParameter(f"{value!r} is not like 500,5000, at most {_MOST_NODES}")
    return tuple(int(word) for word in words)


@click.command()
@click.argument(
    "name", cls=_Name, type=click.Choice([*dict.fromkeys((*BENCHMARKS, *_OPTIONS)), "all"])
)
@output_option("table", "json")
@click.option(
    "--nodes",
    default=",".join(map(str, CLUSTER_NODES)),
    metavar="N,...",
    callback=_counts,
    help="cluster and reclaim-burst: nodes, with a run for each number.",
)
@click.option(
    "--pods",
    default=CLUSTER_PODS,
    type=click.IntRange(2),
    metavar="N",
    help="cluster: pods to bind.",
)
@click.option(
    "--pods-listed",
    default=CLUSTER_PODS_LISTED,
    type=click.IntRange(1),
    metavar="N",
    help="cluster: pods that run when a scheduler starts.",
)
@click.option(
    "--kube-scheduler",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="cluster: measure this binary beside Aliquot.",
)
@click.option(
    "--part",
    type=click.Choice(CLUSTER_PARTS),
    multiple=True,
    help="cluster: measure only this; repeatable.",
)
@click.option(
    "--server",
    type=click.Choice(SERVER_KINDS),
    help="reclaim-burst and kueue: the API server; the real one if it is found, unless told.",
)
@click.option(
    "--scale",
    default=1.0,
    type=click.FloatRange(0, 1, min_open=True),
    metavar="PART",
    help="kueue: so much of the load, such as 0.1.",
)
@click.option(
    "--trace",
    metavar="TRACE",
    help="packing: pods and nodes of openb:NODES.csv,PODS.csv; made up, unless told.",
)
@click.option(
    "--seeds",
    default=PACKING_SEEDS,
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="packing: draws of pods, with the seeds from 1 on.",
)
@click.pass_context
def bench(context: click.Context, /, name: str, output: str, **options: Any) -> None:
    """Measure the performance budgets on this machine.

    \b
    NAME is one of these, or `all` for all of them but the last three:
      decisions     50,000 waiting pods on 5,000 nodes, one cycle
      affinity      20,000 pods with anti-affinity to their kind and a zone spread
      preempt       one reclaim decision at a time among 50,000 running pods
      reclaim       4,000 pods take back what 4,000 borrowing pods hold
      share         water-filling over 10,000 quotas
      queues        500,000 pods of 50,000 jobs in 100 queues
      gpu           20,000 pods that ask for parts of 8,000 cards
      packing       cards in use at 130% demand, by placement and reference rule
      gangs         1,000 gangs of 8 pods, each in one rack; also by preemption
      reservations  how long big claims wait, and what keeping room for them costs
      estimate      how far estimates of waits are off; how often ranges hold
      questions     explain and what-if on files of 50,000 pods, 5,000 nodes
      blowups       inputs of 1 MB that once took minutes or much memory; growth
      apiserver     the embedded API server: 50,000 pods created and watched
      dashboard     the page of 5,000 nodes, 50,000 pods and 1,000 quotas
      reclaim-burst 960 pods that are owed what 1,800 hold, on an API server
      kueue         Kueue's generator: 15,000 short pods, on an API server
      cluster       a scheduler process on an API server; takes many minutes

    Figures hold for this machine and moment: compare the ratios within one run.

    \b
    Examples:
      aliquot bench decisions
      aliquot bench all -o json
      aliquot bench kueue --scale 0.2
      aliquot bench packing --trace openb:NODES.csv,PODS.csv
      aliquot bench cluster --nodes 500 --pods 5000 --part binding
    """
    from rich.console import Console

    from aliquot.bench.figure import as_json
    from aliquot.cli.show import documents, figures

    given = {
        word: value
        for word, value in options.items()
        if context.get_parameter_source(word) is not click.core.ParameterSource.DEFAULT
    }
    _check(name, given)
    names = BENCHMARKS if name == "all" else [name]
    measure = _benchmarks(name, given)
    console = Console(stderr=True)
    with console.status("measuring") as status:
        # Where stderr is no terminal, progress is a line for each step.
        say = status.update if console.is_terminal else partial(click.echo, err=True)
        results = {each: measure[each](lambda words: say(f"measuring {words}")) for each in names}
    if output == "json":
        click.echo(documents.as_json({each: as_json(found) for each, found in results.items()}))
        return
    for each, found in results.items():
        figures.print_figures(each, found)


def _check(name: str, given: dict[str, Any]) -> None:
    """Refuse options that this benchmark does not have, and say which does."""
    for word in given:
        if word not in _OPTIONS.get(name, ()):
            having = " and ".join(f"`bench {each}`" for each in _OPTIONS if word in _OPTIONS[each])
            raise click.UsageError(f"--{word.replace('_', '-')}: only for {having}")


def _benchmarks(
    name: str, given: dict[str, Any]
) -> "dict[str, Callable[[Callable[[str], None]], list[Figure]]]":
    """Every benchmark by name; the one that is asked for with the options that were given."""
    from aliquot.bench.apiserver import apiserver
    from aliquot.bench.cluster import comparison, kueue, reclaim_burst
    from aliquot.bench.dashboard import dashboard
    from aliquot.bench.engine import BENCHMARKS
    from aliquot.bench.estimates import estimates
    from aliquot.bench.packing import packing
    from aliquot.bench.questions import questions

    found: dict[str, Callable[[Callable[[str], None]], list[Figure]]]
    found = {**BENCHMARKS, "estimate": estimates, "questions": questions}
    found |= {"apiserver": apiserver, "dashboard": dashboard}
    found[_PACKING] = partial(packing.measure, packing.Settings())
    fields = {"pods_listed": "listed", "part": "parts"}
    chosen = {fields.get(word, word): value for word, value in given.items()}
    if name == _PACKING:
        found[name] = partial(packing.measure, packing.Settings(**chosen))
    elif name == _CLUSTER:
        found[name] = partial(comparison.measure, comparison.Settings(**chosen))
    elif name == _BURST:
        found[name] = partial(reclaim_burst.measure, reclaim_burst.Settings(**chosen))
    elif name == _KUEUE:
        found[name] = partial(kueue.measure, kueue.Settings(**chosen))
    return found
