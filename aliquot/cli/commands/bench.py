"""`aliquot bench`: the budgets, measured on this machine."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aliquot.cli.show.bar import bar
from aliquot.cluster.benchmarks import BENCHMARKS
from aliquot.cluster.figure import Figure, as_json
from aliquot.server.benchmark import apiserver
from aliquot.server.measuring.together import PARTS, Settings, measure

_BENCHMARKS = {**BENCHMARKS, "apiserver": apiserver}
_CLUSTER = "cluster"
_NAMES = click.Choice([*_BENCHMARKS, _CLUSTER, "all"])
_SIGN = ("█", "cyan", "")
_LONGEST = 16
_MOST_NODES = 20_000


def _counts(context: click.Context, option: click.Parameter, said: str | None) -> Any:
    """Numbers, with commas between them."""
    words = said.split(",") if said is not None else []
    if not all(word.isdecimal() and 0 < int(word) <= _MOST_NODES for word in words):
        raise click.BadParameter(f"{said!r} is not like 500,5000, at most {_MOST_NODES}")
    return tuple(int(word) for word in words)


@click.command()
@click.argument("name", type=_NAMES)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.option("--nodes", callback=_counts, help="Of the cluster, one run each; 500,5000.")
@click.option("--pods", type=click.IntRange(2), help="To be bound; 10000.")
@click.option("--pods-listed", type=click.IntRange(1), help="That run at a start; 50000.")
@click.option(
    "--kube-scheduler", type=click.Path(path_type=Path), help="To be measured beside Aliquot."
)
@click.option("--part", type=click.Choice(PARTS), multiple=True, help="Only this; repeatable.")
def bench(name: str, output: str, **options: Any) -> None:
    """Measure one of the budgets, or all of them but `cluster`, which takes minutes.

    Figures hold for this machine and moment; ratios within one run are what to compare. The options
    are those of `cluster`: it starts servers and schedulers of its own, and ends them.
    """
    given = {word: value for word, value in options.items() if value}
    if given and name != _CLUSTER:
        words = ", ".join(f"--{word.replace('_', '-')}" for word in given)
        raise click.UsageError(f"{words}: only for `bench {_CLUSTER}`")
    names = list(_BENCHMARKS) if name == "all" else [name]
    work = {**_BENCHMARKS, _CLUSTER: _cluster(given)}
    console = Console(stderr=True)
    with console.status("measuring") as status:
        # Where nothing can be written over, it is written line by line.
        say = status.update if console.is_terminal else partial(click.echo, err=True)
        results = {each: work[each](lambda words: say(f"measuring {words}")) for each in names}
    if output == "json":
        click.echo(
            json.dumps({each: as_json(figures) for each, figures in results.items()}, indent=2)
        )
        return
    for each, figures in results.items():
        _print(each, figures)


def _cluster(given: dict[str, Any]) -> Callable[[Callable[[str], None]], list[Figure]]:
    names = {"pods_listed": "listed", "part": "parts"}
    settings = Settings(**{names.get(word, word): value for word, value in given.items()})
    return lambda progress: measure(settings, progress)


def _print(name: str, figures: list[Figure]) -> None:
    bars, console = _bars(figures), Console(highlight=False)
    for on, group in groupby(figures, lambda each: each.on):
        console.print(_table(f"{name}: {on}" if on else name, group, bars))


def _table(title: str, figures: Iterable[Figure], bars: Iterator[Text]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading, justify in (("", "left"), ("measured", "right"), ("", "left"), ("budget", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    table.add_column("")
    for figure in figures:
        style = {True: "green", False: "red", None: ""}[figure.met]
        value = f"{figure.value:,.0f}" if figure.value >= 1000 else f"{figure.value:,.1f}"
        shown = Text(value, style=style)
        table.add_row(figure.what, shown, figure.unit, figure.budget, next(bars))
    return table


def _bars(figures: list[Figure]) -> Iterator[Text]:
    """A bar for each figure that was measured on several things, to one scale for them all."""
    most: dict[tuple[str, str], list[float]] = {}
    for figure in figures:
        most.setdefault((figure.what, figure.unit), []).append(figure.value)
    for figure in figures:
        values = most[figure.what, figure.unit]
        if not figure.on or len(values) < 2:
            yield Text()
            continue
        end, scale = round(figure.value * 1000), round(max(values) * 1000) or 1
        yield bar((end,), (_SIGN,), scale, _LONGEST)
