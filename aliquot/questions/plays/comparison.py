"""The same input under several policies or configurations, side by side.

What is measured of each: how much of the cluster was used, how long pods waited, by team
(namespace) and by size, how even the teams fared, what was evicted and lost by that, and when all
was over. All of it follows from the lives of pods and nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aliquot.dialects import configuration
from aliquot.dialects.core import amounts
from aliquot.dialects.core.times import seconds
from aliquot.engine import natural, quantity
from aliquot.questions.overview import total
from aliquot.questions.plays.lives import Life, Lives
from aliquot.questions.sources.source import Source
from aliquot.simulation.simulation import Simulation

Result = dict[str, Any]
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a name, and the source under its policy and configuration."""

    name: str
    source: Source


def sides(
    source: Source,
    policies: Sequence[str],
    configurations: Sequence[tuple[str, configuration.Configuration]],
) -> list[Side]:
    """Every policy under every configuration."""
    named = configurations or [("", source.settings)]
    chosen: list[str | None] = [*policies] or [source.policy]
    return [
        Side(
            ", ".join(word for word in (policy or "", file) if word) or "as configured",
            replace(source, policy=policy, settings=settings),
        )
        for policy in chosen
        for file, settings in named
    ]


@dataclass(frozen=True, slots=True)
class Play:
    """A simulation that has run, and the lives in it."""

    simulation: Simulation
    lives: Lives
    end: int
    """When it was over."""

    @property
    def pods(self) -> list[Life]:
        """All pods, in the order in which they came."""
        return list(self.lives.of.values())

    @property
    def has(self) -> Counter[str]:
        """What all nodes have at the end."""
        return total(self.simulation)


def played(simulation: Simulation, lives: Lives, until: int | None) -> Play:
    """Run a simulation whose lives are followed."""
    simulation.run(until)
    ends = [each.gone for each in lives.of.values() if each.gone is not None]
    end = until if until is not None else max([*ends, simulation.now, 0])
    lives.finish(simulation, end)
    return Play(simulation, lives, end)


def play(side: Side, until: int | None = None, lives: Lives | None = None) -> Play:
    """Simulate one side to its end."""
    lives = lives or Lives()
    simulation = side.source.simulation()
    lives.follow(simulation)
    return played(simulation, lives, until)


def compare(side: Side, until: int | None = None, lives: Lives | None = None) -> Result:
    """Simulate one side to its end, and measure it."""
    return {"name": side.name, **measured(play(side, until, lives))}


def measured(play: Play) -> Result:
    """The figures of one side."""
    lives, end, has = play.pods, play.end, play.has
    evicted = [each for each in lives if each.evicted is not None]
    by_team, by_size = grouped(lives, team), grouped(lives, size)
    return {
        "policy": play.simulation.engine.policy,
        "makespan": seconds(end),
        "pods": {
            "all": len(lives),
            "started": sum(each.started is not None for each in lives),
            "waiting": sum(each.started is None and each.gone is None for each in lives),
        },
        "utilisation": {
            name: _part(_used(lives, name, end), _offered(play, name))
            for name in sorted(has)
            if name != "pods"
        },
        "waits": _waits(lives, end),
        "teams": {name: _waits(found, end) for name, found in by_team},
        "sizes": {name: _waits(found, end) for name, found in by_size},
        "fairness": jain([_served(found, has, end) for _, found in by_team]),
        "evictions": len(evicted),
        "lostWork": lost_work(evicted, end),
    }


def _offered(play: Play, resource: str) -> int:
    """Amount times nanoseconds that nodes had, by when they were there."""
    stays = play.lives.capacity(resource, play.end)
    return sum((until - since) * amount for since, until, amount in stays)


def team(life: Life) -> str:
    """The namespace of a pod."""
    return life.pod.namespace


def size(life: Life) -> str:
    """What a pod requests, in words; sizes that are alike but for bytes are one."""
    found = dict(life.pod.shape.requests)
    shown = {name: found[name] for name in found if name not in ("pods", "memory")}
    words = amounts.write(shown)
    return ", ".join(f"{text} {name}" for name, text in words.items()) or "nothing"


def grouped(lives: Iterable[Life], key: Callable[[Life], str]) -> list[tuple[str, list[Life]]]:
    """Lives by team or size, in the order in which people count."""
    groups: dict[str, list[Life]] = {}
    for each in lives:
        groups.setdefault(key(each), []).append(each)
    return sorted(groups.items(), key=lambda group: natural(group[0]))


def _waits(lives: Sequence[Life], end: int) -> Result:
    """Mean and quantiles of the waits, in seconds; those that still wait count up to the end.

    A quantile is the shortest wait that at least so many percent did not wait longer than.
    """
    found = sorted(each.waited(end) for each in lives)
    rows: Result = {"pods": len(found), "mean": _seconds(sum(found) / len(found) if found else 0)}
    for word, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
        rows[word] = _seconds(found[-(-len(found) * percent // 100) - 1] if found else 0)
    return rows


def _seconds(nanos: float) -> float:
    return round(nanos / _SECOND, 3)


def _used(lives: Iterable[Life], resource: str, end: int) -> int:
    """Amount times nanoseconds."""
    return sum(dict(each.pod.shape.requests).get(resource, 0) * each.ran(end) for each in lives)


def _part(some: int, most: int) -> float:
    return round(some / most, 6) if most else 0.0


def _served(lives: Sequence[Life], has: Counter[str], end: int) -> float:
    """Of the time that a team's pods were there, the part in which they ran, by what they take."""
    ran = there = 0.0
    for each in lives:
        weight = weight_of(each, has)
        ran += weight * each.ran(end)
        there += weight * (each.ran(end) + each.waited(end))
    return ran / there if there else 1.0


def weight_of(life: Life, has: Counter[str]) -> float:
    """The largest part of the cluster that a pod takes in any resource."""
    requests = life.pod.shape.requests
    return max((amount / has[name] for name, amount in requests if has[name]), default=0.0)


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all fared alike, 1/n if one had all."""
    squares = sum(each * each for each in values)
    return round(sum(values) ** 2 / (len(values) * squares), 6) if squares else 1.0


def lost_work(evicted: Iterable[Life], end: int) -> dict[str, float]:
    """What evicted pods had used, in hours of each resource: it is done again."""
    lost: Counter[str] = Counter()
    for each in evicted:
        for name, amount in each.pod.shape.requests:
            if name != "pods":
                lost[name] += amount * each.ran(end)
    hour = 3600 * _SECOND
    return {
        name: round(lost[name] / quantity.per_one(name) / hour, 3)
        for name in sorted(lost)
        if name != "memory"
    }
