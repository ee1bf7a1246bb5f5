"""The rules of runtime, written down as plainly as possible: slow, and no code of the engine's."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

LIMIT = 2**62
TOP = ""

Amounts = dict[int, int]


@dataclass(frozen=True)
class Team:
    """A quota as the rules see it; amounts by row."""

    name: str
    parent: str = TOP
    low: Amounts = field(default_factory=dict)
    high: Amounts = field(default_factory=dict)
    weight: Amounts = field(default_factory=dict)
    lend: bool = True
    scale: bool = True
    own: Amounts = field(default_factory=dict)


class Result(NamedTuple):
    request: int
    limited: int
    scaled_min: int
    runtime: int


def by_the_rules(teams: Iterable[Team], row: int, total: int, one: int) -> dict[str, Result]:
    """Everybody's figures in one resource, of which `one` is the smallest whole."""
    tree = {team.name: team for team in teams}
    asks = {name: _asks(tree, name, row) for name in tree}
    found: dict[str, Result] = {}

    def descend(parent: str, has: int) -> None:
        family = {name: team for name, team in sorted(tree.items()) if team.parent == parent}
        floors = _floors(family, row, has)
        wants = {name: asks[name][1] for name in family}
        weights = {name: _weight(team, row, one) for name, team in family.items()}
        lend = {name: team.lend for name, team in family.items()}
        for name, runtime in _water(has, wants, floors, weights, lend).items():
            found[name] = Result(*asks[name], floors[name], runtime)
            descend(name, runtime)

    descend(TOP, total)
    return found


def _asks(tree: Mapping[str, Team], name: str, row: int) -> tuple[int, int]:
    team = tree[name]
    request = team.own.get(row, 0)
    for child in tree.values():
        if child.parent == name:
            request += _asks(tree, child.name, row)[1]
    if not team.lend:
        request = max(request, team.low.get(row, 0))
    return min(request, LIMIT), min(request, team.high.get(row, LIMIT), LIMIT)


def _weight(team: Team, row: int, one: int) -> int:
    if any(team.weight.values()) and row in team.weight:
        return team.weight[row]
    if row in team.high:
        return team.high[row]
    return team.low.get(row, 0) or one


def _floors(family: Mapping[str, Team], row: int, has: int) -> dict[str, int]:
    low = {name: team.low.get(row, 0) for name, team in family.items()}
    if sum(low.values()) <= has:
        return low
    elastic = sum(low[name] for name in family if family[name].scale)
    rigid = sum(low.values()) - elastic
    share = Fraction(max(has - rigid, 0), elastic or 1)
    return {name: int(low[name] * share) if family[name].scale else low[name] for name in family}


def _water(
    has: int,
    wants: Mapping[str, int],
    floors: Mapping[str, int],
    weights: Mapping[str, int],
    lend: Mapping[str, bool],
) -> dict[str, int]:
    level = {name: floors[name] for name in wants}
    for name in wants:
        if wants[name] <= floors[name] and lend[name]:
            level[name] = wants[name]
    pool = has - sum(level.values())
    while pool > 0:
        hungry = {n: weights[n] for n in wants if weights[n] > 0 and wants[n] > level[n]}
        if not hungry:
            break
        for name, units in _apportion(pool, hungry).items():
            taken = min(units, wants[name] - level[name])
            level[name] += taken
            pool -= taken
    return level


def _apportion(pool: int, weights: Mapping[str, int]) -> dict[str, int]:
    exact = {name: Fraction(pool * w, sum(weights.values())) for name, w in weights.items()}
    seats = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (seats[name] - exact[name], name))
    for name in by_remainder[: pool - sum(seats.values())]:
        seats[name] += 1
    return seats
