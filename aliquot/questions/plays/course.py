"""The course of a simulation: its figures over time, in parts of equal length.

Of each part, the mean of what held in it; evictions and lost work are sums. The measures are those
of `comparison`, restricted to a part. Amounts are of one resource, the one that matters most.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from aliquot.dialects.core.times import seconds
from aliquot.engine import QuotaSummary, natural, quantity
from aliquot.questions.plays.comparison import Play, grouped, jain, lost_work, team, weight_of
from aliquot.questions.plays.lives import Life

Result = dict[str, Any]
PARTS = 120
"""Enough that a curve looks like one, and few enough that a part of a day is a quarter hour."""
_DIGITS = 6
_SCALE = 10**6
"""Parts of a cluster are counted in millionths, so that rounding does not swallow small pods."""
_NOT_MAIN = ("pods", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of equal length from 0 to `end`; none if no time passes."""

    end: int
    number: int = PARTS

    @property
    def edges(self) -> list[int]:
        """Where parts begin, and where the last one ends."""
        if not self.end:
            return []
        return [self.end * each // self.number for each in range(self.number + 1)]

    def means(self, spans: Iterable[tuple[int, int, float]]) -> list[float]:
        """The mean of each part, of amounts that held from one moment to another."""
        edges = self.edges
        widths = [right - left for left, right in pairwise(edges)]
        areas = self._areas(spans)
        return [
            round(area / width, _DIGITS) if width else 0.0
            for area, width in zip(areas, widths, strict=True)
        ]

    def _areas(self, spans: Iterable[tuple[int, int, float]]) -> list[float]:
        """Amount times time of each part: by what changes at which moment."""
        changes: dict[int, float] = {}
        for since, until, amount in spans:
            if until > since:
                changes[since] = changes.get(since, 0) + amount
                changes[until] = changes.get(until, 0) - amount
        edges, moments = self.edges, sorted(changes)
        areas, level, place = [], 0.0, 0
        for left, right in pairwise(edges):
            area, at = 0.0, left
            while place < len(moments) and moments[place] < right:
                moment = moments[place]
                if moment > at:
                    area, at = area + level * (moment - at), moment
                level += changes[moment]
                place += 1
            areas.append(area + level * (right - at))
        return areas

    def sums(self, found: Iterable[tuple[int, float]]) -> list[float]:
        """The sum of each part, of amounts at moments; those at the end are of the last part."""
        sums = [0.0] * (len(self.edges) - 1 if self.end else 0)
        for at, amount in found:
            if sums:
                sums[min(at * self.number // self.end, self.number - 1)] += amount
        return [round(each, _DIGITS) for each in sums]


def main_resource(plays: Sequence[Play]) -> str | None:
    """The resource that charts are about: an accelerator if pods ask for one, else the fullest."""
    asked: dict[str, float] = {}
    for play in plays:
        has = play.has
        for life in play.pods:
            for name, amount in life.pod.shape.requests:
                if has[name] and name not in _NOT_MAIN:
                    there = max(life.ran(play.end) + life.waited(play.end), 1)
                    asked[name] = asked.get(name, 0.0) + amount * there / has[name]
    extended = {name: number for name, number in asked.items() if "/" in name}
    some = extended or asked
    return max(sorted(some), key=lambda name: some[name]) if some else None


def course(play: Play, resource: str | None, end: int | None = None) -> Result:
    """The figures over time of one simulation, up to `end`, or to its own."""
    parts = Parts(play.end if end is None else end)
    one, has = quantity.per_one(resource) if resource else 1, play.has
    teams = grouped(play.pods, team)

    def means(lives: Iterable[Life], spans: Callable[[Life], Iterator[Span]]) -> list[float]:
        return parts.means(span for life in lives for span in spans(life))

    def used(life: Life) -> Iterator[Span]:
        amount = dict(life.pod.shape.requests).get(resource or "", 0)
        if amount and life.started is not None:
            yield life.started, _gone(life, play.end), amount / one

    def waits(life: Life) -> Iterator[Span]:
        yield life.came, life.waited_until(play.end), 1

    capacity = ((a, b, n / one) for a, b, n in play.lives.capacity(resource or "", play.end))
    evicted = [each for each in play.pods if each.evicted is not None]
    return {
        "resource": resource,
        "end": seconds(parts.end),
        "capacity": parts.means(capacity),
        "used": {name: means(lives, used) for name, lives in teams},
        "waiting": {name: means(lives, waits) for name, lives in teams},
        "usedAtEnd": _used_at_end(play, resource, has),
        "fairness": _fairness(play, parts, has),
        "evictions": {
            reason: parts.sums((each.evicted or 0, 1) for each in evicted if each.reason == reason)
            for reason in sorted({str(each.reason) for each in evicted})
        },
        "lost": parts.sums(
            (each.evicted or 0, lost_work([each], play.end).get(resource or "", 0.0))
            for each in evicted
        ),
        "losses": {
            name: {
                "evictions": len(lives),
                "lost": lost_work(lives, play.end).get(resource or "", 0.0),
            }
            for name, lives in grouped(evicted, team)
        },
        "nodes": _nodes(play, resource, parts, one),
        "shares": _shares(play, resource, one),
    }


Span = tuple[int, int, float]


def _gone(life: Life, end: int) -> int:
    return end if life.gone is None else life.gone


def _used_at_end(play: Play, resource: str | None, has: Counter[str]) -> float:
    """The part that is in use once all is over: what there is to say if no time passes."""
    runs = (each for each in play.pods if each.started is not None and each.gone is None)
    used = sum(dict(each.pod.shape.requests).get(resource or "", 0) for each in runs)
    return round(used / has[resource], _DIGITS) if resource and has[resource] else 0.0


def _fairness(play: Play, parts: Parts, has: Counter[str]) -> list[float | None]:
    """Jain's index in each part over the teams that were there; None where there was none."""
    served = []
    for _, lives in grouped(play.pods, team):
        weights = [(life, _SCALE * weight_of(life, has)) for life in lives]
        ran = parts.means(
            (life.started, _gone(life, play.end), weight)
            for life, weight in weights
            if life.started is not None
        )
        waited = parts.means(
            (life.came, life.waited_until(play.end), weight) for life, weight in weights
        )
        served.append([(a, a + b) for a, b in zip(ran, waited, strict=True)])
    found: list[float | None] = []
    for row in zip(*served, strict=True):
        there = [ran / both for ran, both in row if both > 0]
        found.append(jain(there) if there else None)
    return found


def _nodes(
    play: Play, resource: str | None, parts: Parts, one: int
) -> dict[str, list[float | None]]:
    """Of each node, the part of it that was used; None where it was not there."""
    offered: dict[str, list[Span]] = {}
    for stay in play.lives.stays:
        has = dict(stay.has).get(resource or "", 0) / one
        until = play.end if stay.until is None else stay.until
        if has:
            offered.setdefault(stay.node, []).append((stay.since, until, has))
    taken: dict[str, list[Span]] = {}
    for life in play.pods:
        amount = dict(life.pod.shape.requests).get(resource or "", 0) / one
        if amount and life.started is not None and life.pod.node is not None:
            span = (life.started, _gone(life, play.end), amount)
            taken.setdefault(life.pod.node, []).append(span)
    return {
        node: [
            round(used / all_of_it, _DIGITS) if all_of_it else None
            for used, all_of_it in zip(
                parts.means(taken.get(node, ())), parts.means(offered[node]), strict=True
            )
        ]
        for node in sorted(offered, key=natural)
    }


def _shares(play: Play, resource: str | None, one: int) -> list[Result]:
    """Of each quota, the means of what it used, was guaranteed, and could have by its share."""
    samples = [(each.until - each.since, each.quotas) for each in play.lives.samples]
    if not samples:
        samples = [(1, tuple(play.simulation.engine.summarise()))]
    whole = sum(width for width, _ in samples)
    sums: dict[str, Counter[str]] = {}
    for width, quotas in samples:
        for each in quotas:
            if resource in each.used or resource in each.min:
                for word, amount in _words(each, resource or ""):
                    sums.setdefault(each.name, Counter())[word] += amount * width
    return [
        {"quota": name, **{word: round(n / whole / one, _DIGITS) for word, n in found.items()}}
        for name, found in sorted(sums.items(), key=lambda each: natural(each[0]))
    ]


def _words(quota: QuotaSummary, resource: str) -> Iterator[tuple[str, int]]:
    for word, figures in (("used", quota.used), ("min", quota.min), ("runtime", quota.runtime)):
        yield word, figures.get(resource, 0)
