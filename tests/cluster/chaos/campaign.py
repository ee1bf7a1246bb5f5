"""The campaign: rounds of faults on a cluster under load, and the table of what came of them."""

import asyncio
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from aliquot.kube.observe import catalogue
from aliquot.kube.observe.catalogue import Metric
from tests.cluster.chaos.faults import FAULTS, MIXABLE
from tests.cluster.chaos.stage import RestartableServer, Stage
from tests.cluster.chaos.world import Name, World

_PATIENCE = 120.0
"""Seconds for the first bind after a fault, and for the load to come to rest: several Leases."""
_QUIET = 2.5
"""Seconds without a change after which it rests."""
_LOOK = 0.25
_LAST_CHANGES = 2.0
"""Seconds until what the load wanted last is created and deleted, and schedulers know of it."""
_BOOKS_PATIENCE = 20.0
"""Seconds for the metrics to show what the scheduler's books say."""
_MIXED = 0.4
"""The part of rounds in which a second fault happens at the same time."""


@dataclass(frozen=True)
class Round:
    """One round: what happened, and what came of it."""

    server: str
    world: str
    number: int
    fault: str
    also: str | None
    recovered: float | None
    """Seconds from the end of the fault to the first bind; None: there was none."""
    rested: float | None
    """Seconds until nothing moved any more; None: it never did."""
    binds: int
    evictions: int
    unexplained: int
    """Evictions without an Event."""
    gaps: int
    """How often the checker itself missed events, since the server had forgotten them."""
    wrong: tuple[tuple[str, str], ...]
    """Word and text of what must not be."""

    def count(self, *words: str) -> int:
        """How often one of these was found."""
        return sum(word in words for word, _ in self.wrong)


class Deck:
    """Deals faults: each once before one comes again, in an order that the seed decides."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._left: list[str] = []

    def deal(self) -> tuple[str, str | None]:
        """A fault, and for some rounds another that happens at the same time."""
        if not self._left:
            self._left = sorted(FAULTS)
            self._dice.shuffle(self._left)
        fault = self._left.pop()
        others = [each for each in MIXABLE if each != fault]
        return fault, self._dice.choice(others) if self._dice.random() < _MIXED else None


async def play(
    kind: str, world: Name, rounds: int, deck: Deck, folder: Path, dice: random.Random
) -> list[Round]:
    """So many rounds on a fresh server of this kind."""
    folder.mkdir(parents=True)
    server = RestartableServer(kind, folder)
    try:
        await server.start()
        async with Stage(World(world), server, folder, dice).running() as stage:
            await stage.leader()
            return [await _round(stage, kind, number + 1, *deck.deal()) for number in range(rounds)]
    finally:
        await server.stop()


async def _round(stage: Stage, kind: str, number: int, fault: str, also: str | None) -> Round:
    checker, began = stage.checker, time.monotonic()
    before, gaps = len(checker.wrong), stage.feed.gaps
    stage.load.resting = False
    for owner in stage.load.owners:
        stage.load.scale(owner)
    stage.load.stream()
    await stage.leader()
    await asyncio.sleep(stage.dice.uniform(1.0, 3.0))
    checker.stale_since = time.monotonic()
    await asyncio.gather(*(FAULTS[each](stage) for each in (fault, also) if each))
    over = time.monotonic()
    stage.load.stream()
    recovered = await _first_bind(stage, over)
    await asyncio.sleep(stage.dice.uniform(1.0, 3.0))
    checker.stale_since = None
    stage.load.resting, still = True, time.monotonic() + _LAST_CHANGES
    rested, problems = await _rest(stage)
    events = await stage.events()
    problems += [("needless", each) for each in checker.judge_evictions(began, still, events)]
    problems += [("books", each) for each in await _books(stage)]
    problems += [("checker", each) for each in checker.recount()]
    found = Round(
        *(kind, stage.world.name, number, fault, also, recovered, rested),
        binds=sum(each.seen >= began for each in checker.binds),
        evictions=sum(each.at >= began for each in checker.evictions),
        unexplained=checker.unexplained(began, events),
        gaps=stage.feed.gaps - gaps,
        wrong=(*((each.word, each.text) for each in checker.wrong[before:]), *problems),
    )
    print(describe(found), flush=True)
    return found


async def _first_bind(stage: Stage, since: float) -> float | None:
    """Seconds to the first bind after it by a replica that leads.

    What a leader had sent before it was killed may still arrive. The server notes whole seconds, so
    the next one is the first of which it is certain.
    """
    end, leading = since + _PATIENCE, time.time() - (time.monotonic() - since)
    if not any(each.leads for each in stage.replicas):
        await stage.leader()
        leading = time.time()
    noted = math.ceil(leading)
    while time.monotonic() < end:
        stage.check()
        found = [each.seen for each in stage.checker.binds[-500:] if each.noted >= noted]
        if found:
            return min(found) - since
        await asyncio.sleep(0.05)
    return None


async def _rest(stage: Stage) -> tuple[float | None, list[tuple[str, str]]]:
    """Wait until nothing moves, and no claim waits that could start."""
    began, startable = time.monotonic(), list[str]()
    while time.monotonic() < began + _PATIENCE:
        stage.check()
        await asyncio.sleep(_LOOK)
        if time.monotonic() - stage.checker.last_change < _QUIET:
            continue
        startable = list(stage.checker.startable())
        if not startable:
            return time.monotonic() - began, []
    if startable:
        return None, [("lost", each) for each in startable]
    return None, [("restless", f"pods come and go for {_PATIENCE:.0f} s without a reason")]


async def _books(stage: Stage) -> list[str]:
    """Where the leader's books are not what the cluster holds."""
    end, problems = time.monotonic() + _BOOKS_PATIENCE, list[str]()
    while True:
        problems = list(await _differences(stage))
        if not problems or time.monotonic() > end:
            return problems
        await asyncio.sleep(1.0)


async def _differences(stage: Stage) -> Iterator[str]:
    said = await stage.metrics(await stage.leader())
    if not said:
        return iter(["the leader's metrics do not answer"])
    queues = stage.world.name == "queues"
    metric = catalogue.QUEUE_USED if queues else catalogue.QUOTA_USED
    return differences(said, stage.checker.used(), metric)


def differences(said: str, used: Mapping[str, Fraction], metric: Metric) -> Iterator[str]:
    """Where what the cluster holds, by team, is not what the metrics of a replica say."""
    families = text_string_to_metric_families(said)
    samples = [each for family in families for each in family.samples]
    word = metric.labels[0]
    shown = {
        each.labels[word].rpartition("/")[2]: each.value
        for each in samples
        if each.name == metric.name and each.labels["resource"] == "cpu"
    }
    for name, amount in used.items():
        if round(shown.get(name, 0) * 1000) != amount * 1000:
            yield f"{word} {name} holds {amount} cpu, the scheduler says {shown.get(name)}"
    for each in samples:
        if each.name == catalogue.INVARIANT_VIOLATIONS.name and each.value:
            yield f"{each.value:.0f} violations of invariants"


# The table.


def describe(one: Round) -> str:
    """A round in a line, and a line for each thing that was wrong."""
    also = f" + {one.also}" if one.also else ""
    times = ", ".join(
        f"{word} {'never' if value is None else f'{value:.1f} s'}"
        for word, value in (("recovered", one.recovered), ("rested", one.rested))
    )
    head = f"{one.server} {one.world} {one.number}: {one.fault}{also}: {times}"
    lines = [f"{head}, {one.binds} binds, {one.evictions} evictions ({one.unexplained} untold)"]
    return "\n".join([*lines, *(f"    {word}: {text}" for word, text in one.wrong)])


def table(rounds: Iterable[Round]) -> str:
    """What came of each fault."""
    rounds = list(rounds)
    faults = sorted({each.fault for each in rounds}, key=list(FAULTS).index)
    rows: list[tuple[str, ...]] = [
        (
            *("fault", "rounds", "recovered in s, median", "max", "binds", "evictions"),
            *("lost", "double-booked", "needless", "books"),
        ),
        *(_row(each, [one for one in rounds if one.fault == each]) for each in faults),
        _row("all", rounds),
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines)


def _row(name: str, rounds: list[Round]) -> tuple[str, ...]:
    times = [each.recovered for each in rounds if each.recovered is not None]
    never = len(rounds) - len(times)
    return (
        *(name, str(len(rounds)), f"{median(times):.1f}" if times else "-"),
        f"{max(times):.1f}" if times and not never else "never",
        *(str(sum(each.binds for each in rounds)), str(sum(each.evictions for each in rounds))),
        str(sum(each.count("lost", "restless") for each in rounds)),
        str(sum(each.count("double-booked", "above max", "bound twice") for each in rounds)),
        *(str(sum(each.count(word) for each in rounds)) for word in ("needless", "books")),
    )


def save(rounds: Iterable[Round], file: Path) -> None:
    """All rounds as JSON, and how often each thing was found."""
    rounds = list(rounds)
    words = Counter(word for each in rounds for word, _ in each.wrong)
    body = {"rounds": [asdict(each) for each in rounds], "wrong": dict(words)}
    file.write_text(json.dumps(body, indent=2))
