"""Gangs as little bars: how many of the pods that must start together run."""

from collections.abc import Iterator
from itertools import islice

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.show.bar import Part, bar
from aliquot.cli.show.grid import MOST_ROWS, indented, more, table
from aliquot.cluster.outcome import Result

_LENGTH = 10
_PARTS: tuple[Part, ...] = (("█", "green", ""), ("░", "bright_black", ""))
_STYLES = {"Running": "green", "Completed": "bright_black", "Unknown": "red"}


def gang_bars(gangs: list[Result], width: int) -> Iterator[RenderableType]:
    """A line for each gang."""
    drawn = table(width, "gang", "phase", "running", "", right=("running",))
    for gang in islice(gangs, MOST_ROWS):
        running, fewest = gang["running"], gang["minMember"]
        phase = Text(gang["phase"], style=_STYLES.get(gang["phase"], "yellow"))
        ends = (min(running, fewest), fewest) if gang["phase"] != "Completed" else (fewest, fewest)
        drawn.add_row(
            gang["name"], phase, f"{running}/{fewest}", bar(ends, _PARTS, fewest, _LENGTH)
        )
    yield indented(drawn)
    yield from (indented(each) for each in more(len(gangs) - MOST_ROWS))
