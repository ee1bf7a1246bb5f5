"""The figures of `aliquot bench`: a table for each thing measured, with budgets and bars."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.table import Table
from rich.text import Text

from aliquot.bench.figure import Figure
from aliquot.cli.drawing.bars import Segment, bar
from aliquot.cli.drawing.signs import console as make_console

_SEGMENT: Segment = ("█", "cyan", "measured, to one scale")
_BAR = 16
"""Characters of the longest bar: a ratio of two figures is read from it, the numbers stand beside
it."""


def print_figures(name: str, figures: list[Figure]) -> None:
    """Print a benchmark's figures, in the order in which they were measured."""
    bars, console = list(_bars(figures)), make_console()
    left = iter(bars)
    for on, group in groupby(figures, lambda each: each.on):
        console.print(_table(f"{name}: {on}" if on else name, group, left))
    if any(bars):
        sign, style, words = _SEGMENT
        console.print(Text(f"{sign} {words}", style=style))


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
    """A bar for each figure that was measured on several things, to one scale for all of them."""
    measured: dict[tuple[str, str], list[float]] = {}
    for figure in figures:
        measured.setdefault((figure.what, figure.unit), []).append(figure.value)
    for figure in figures:
        values = measured[figure.what, figure.unit]
        if not figure.on or len(values) < 2:
            yield Text()
            continue
        end, scale = round(figure.value * 1000), round(max(values) * 1000) or 1
        yield bar((end,), (_SEGMENT,), scale, _BAR)
