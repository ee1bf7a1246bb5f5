"""The report of `aliquot scheduler --shadow`: what would have been different, as a table or JSON.

It is printed at intervals and at the end. `-o json` has one line for each report.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import click
from rich.console import Group, RenderableType
from rich.text import Text

from aliquot.cli.drawing.grid import (
    MOST_ROWS,
    Cell,
    indented,
    omitted,
    print_drawn,
    table,
    titled,
)
from aliquot.json import Body
from aliquot.kube.api.access import Access
from aliquot.kube.shadow.comparison import Verdict
from aliquot.kube.shadow.report import report
from aliquot.kube.shadow.service import shadowing
from aliquot.kube.shadow.shadow import Settings, Shadow

_SHORTEST_INTERVAL = 1.0
"""Seconds between two reports: more often, they are not read."""
_MEANING = {
    Verdict.AGREES: ("the same node", "green"),
    Verdict.OTHER_NODE: ("started by both, on other nodes", ""),
    Verdict.WOULD_WAIT: ("started, where Aliquot would have let them wait", "yellow"),
    Verdict.WOULD_EVICT: ("started, where Aliquot would have evicted pods for them", "yellow"),
    Verdict.NEVER_STARTED: ("never started, where Aliquot would have started them", "yellow"),
}


@asynccontextmanager
async def shown_shadow(
    reach: Callable[[], Access],
    settings: Settings,
    host: str,
    health_port: int | None,
    every: float,
    output: str,
) -> AsyncIterator[None]:
    """Run a shadow, and print its report every so many seconds and at the end."""
    async with shadowing(reach, settings, host, health_port) as shadow:
        printing = asyncio.create_task(_print_often(shadow, every, output))
        try:
            yield
        finally:
            printing.cancel()
            if shadow.engine is not None:
                print_report(report(shadow), output)


async def _print_often(shadow: Shadow, every: float, output: str) -> None:
    while True:
        await asyncio.sleep(max(every, _SHORTEST_INTERVAL))
        if shadow.engine is not None:
            print_report(report(shadow), output)


def print_report(found: Body, output: str) -> None:
    """Print a report as a table, or as a line of JSON."""
    if output == "json":
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        print_drawn(lambda width: Group(*_parts(found, width)))


def _parts(found: Body, width: int) -> Iterator[RenderableType]:
    yield Text.assemble(
        *("policy ", (found["policy"], "bold"), ", beside the present scheduler since "),
        f"{found['since']}, as of {found['at']}",
    )
    yield titled("PODS STARTED", _verdicts(found, width))
    evictions = found["evictions"]
    words = f"Aliquot would have evicted {evictions['shadow']} pods, the cluster evicted "
    yield titled("EVICTIONS", indented(Text(f"{words}{evictions['cluster']}")))
    if found["wouldEvict"]:
        yield _evictions(found["wouldEvict"], width)
    if found["differences"]:
        yield titled("DIFFERENCES", _differences(found["differences"], width))
    yield titled("WAITING NOW", _pending(found["pending"], width))


def _verdicts(found: Body, width: int) -> RenderableType:
    rows: list[list[Cell]] = [
        [str(found["pods"][verdict.value]), Text(verdict.value, style=style), meaning]
        for verdict, (meaning, style) in _MEANING.items()
    ]
    for reason, number in found["wouldWaitFor"].items():
        rows.append([str(number), Text(reason, style="yellow"), "why they would have waited"])
    earlier = found["earlier"]
    if earlier["pods"]:
        words = f"{earlier['seconds']:g} s altogether, {earlier['most']:g} s at most"
        rows.append([str(earlier["pods"]), "earlier", f"Aliquot would have been faster: {words}"])
    return table(width, ("pods", "verdict", "why"), rows, right=("pods",))


def _differences(found: list[Body], width: int) -> RenderableType:
    """The last ones, the newest first."""
    rows: list[list[Cell]] = [
        [each["at"], each["pod"], each["verdict"], each["node"] or "", _why(each)]
        for each in list(reversed(found))[:MOST_ROWS]
    ]
    drawn = table(width, ("at", "pod", "verdict", "node", "why"), rows)
    return Group(drawn, *map(indented, omitted(len(found) - MOST_ROWS)))


def _why(found: Body) -> str:
    shadow = found["shadow"]
    words = []
    if shadow["reason"]:
        words.append(f"{shadow['reason']}: {shadow['message']}")
    if shadow["evicts"]:
        words.append(f"would have evicted {', '.join(shadow['evicts'])}")
    if shadow["node"]:
        words.append(f"Aliquot: {shadow['node']}")
    if found["earlierSeconds"] >= 1:
        words.append(f"{found['earlierSeconds']:g} s earlier")
    return "; ".join(words)


def _evictions(found: list[Body], width: int) -> RenderableType:
    rows: list[list[Cell]] = [
        [each["at"], each["pod"], each["for"] or "", f"{each['reason']}: {each['message']}"]
        for each in list(reversed(found))[:MOST_ROWS]
    ]
    drawn = table(width, ("at", "pod", "for", "why"), rows)
    return Group(drawn, *map(indented, omitted(len(found) - MOST_ROWS)))


def _pending(found: Body, width: int) -> RenderableType:
    rows: list[list[Cell]] = [
        [str(found["wouldStart"]), "wouldStart", "Aliquot would have started them"],
        [str(found["wouldEvict"]), "wouldEvict", "Aliquot would evict pods for them"],
        [str(found["wouldWait"]), "wouldWait", "they wait with Aliquot, too"],
    ]
    for reason, number in found["wouldWaitFor"].items():
        rows.append([str(number), Text(reason, style="yellow"), "why they wait with Aliquot"])
    return table(width, ("pods", "verdict", "why"), rows, right=("pods",))
