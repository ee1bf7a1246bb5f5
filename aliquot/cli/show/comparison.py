"""A comparison as a table: a row for each figure, a column for each side."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType

from aliquot.cli.drawing.grid import Cell, elapsed, table, titled

Result = dict[str, Any]


def drawn(sides: Sequence[Result], width: int) -> RenderableType:
    """The figures, then the waits by team and by size."""
    names = [each["name"] for each in sides]
    parts: list[RenderableType] = [table(width, ("figure", *names), list(_figures(sides)), ())]
    for title, word in (("MEAN WAIT BY TEAM", "teams"), ("MEAN WAIT BY SIZE", "sizes")):
        rows = list(_rows(sides, word))
        if rows:
            parts.append(titled(title, table(width, ("figure", *names), rows, tuple(names))))
    return Group(*parts)


def _figures(sides: Sequence[Result]) -> Iterator[list[Cell]]:
    rows: list[tuple[str, Callable[[Result], str]]] = [
        ("policy", lambda each: str(each["policy"])),
        ("makespan", lambda each: elapsed(each["makespan"])),
        ("pods started", lambda each: f"{each['pods']['started']} of {each['pods']['all']}"),
        ("mean wait", lambda each: elapsed(each["waits"]["mean"])),
        ("p90 wait", lambda each: elapsed(each["waits"]["p90"])),
        ("longest wait", lambda each: elapsed(each["waits"]["max"])),
        ("fairness (Jain)", lambda each: f"{each['fairness']:.3f}"),
        ("evictions", lambda each: str(each["evictions"])),
    ]
    for name, text in rows:
        yield [name, *(text(each) for each in sides)]
    for resource in dict.fromkeys(name for each in sides for name in each["utilisation"]):
        used = (f"{100 * each['utilisation'].get(resource, 0):.1f}%" for each in sides)
        yield [f"used {resource}", *used]
    for resource in dict.fromkeys(name for each in sides for name in each["lostWork"]):
        lost = (f"{each['lostWork'].get(resource, 0):g}" for each in sides)
        yield [f"lost hours of {resource}", *lost]


def _rows(sides: Sequence[Result], word: str) -> Iterator[list[Cell]]:
    for name in dict.fromkeys(name for each in sides for name in each[word]):
        waits = (each[word].get(name) for each in sides)
        yield [name, *(elapsed(found["mean"]) if found else "-" for found in waits)]
