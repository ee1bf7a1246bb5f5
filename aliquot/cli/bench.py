"""`aliquot bench`: the budgets, measured on this machine."""

import json

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aliquot.cluster.benchmarks import BENCHMARKS
from aliquot.cluster.figure import Figure, as_json
from aliquot.server.benchmark import apiserver

_BENCHMARKS = {**BENCHMARKS, "apiserver": apiserver}
_NAMES = click.Choice([*_BENCHMARKS, "all"])


@click.command()
@click.argument("name", type=_NAMES)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def bench(name: str, output: str) -> None:
    """Measure one of the budgets, or all of them.

    Figures hold for this machine and moment; ratios within one run are what to compare.
    """
    names = list(_BENCHMARKS) if name == "all" else [name]
    with Console(stderr=True).status("measuring") as status:
        results = {
            each: _BENCHMARKS[each](lambda words: status.update(f"measuring {words}"))
            for each in names
        }
    if output == "json":
        click.echo(
            json.dumps({each: as_json(figures) for each, figures in results.items()}, indent=2)
        )
        return
    for each, figures in results.items():
        _print(each, figures)


def _print(name: str, figures: list[Figure]) -> None:
    table = Table(title=name, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading, justify in (("", "left"), ("measured", "right"), ("", "left"), ("budget", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for figure in figures:
        style = {True: "green", False: "red", None: ""}[figure.met]
        value = f"{figure.value:,.0f}" if figure.value >= 1000 else f"{figure.value:,.1f}"
        table.add_row(figure.what, Text(value, style=style), figure.unit, figure.budget)
    Console(highlight=False).print(table)
