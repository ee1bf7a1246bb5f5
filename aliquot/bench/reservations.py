"""Reservations, measured: what they cost in idle GPUs, and how long big claims wait without them.

A stream of small pods, pods of a whole node, and gangs of four nodes is played on the engine in
virtual time: with a `reserveAfter` that never ends, and as the engine comes, with and without ends
that pods state. Nothing is timed, so the figures are the same on every machine. No pod preempts:
only waiting is compared.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from aliquot.bench.figure import Figure
from aliquot.engine import (
    Bind,
    Engine,
    Event,
    Gang,
    GangGone,
    GangSet,
    Knobs,
    Node,
    NodeSet,
    PlacementKnobs,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaSet,
    Shape,
)

GPU = "nvidia.com/gpu"
_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND
_NODES, _CARDS, _TEAMS = 64, 8, 8
"""512 GPUs, an eighth of them guaranteed to each team. Small pods are of one half of the teams,
which borrow what the other half leaves idle. The big claims are of that half, mostly within its
min: they are owed their room, and do not preempt, so that only a reservation gets it for them."""
_SMALL = (1, 1, 1, 2, 2, 4)
"""GPUs of a small pod."""
_GANG = 4
"""Pods of a gang, each with a whole node."""
_RUN = (10 * _MINUTE, 30 * _MINUTE)
"""How long a pod runs: 20 minutes, give or take ten."""
_SINGLE_EVERY, _GANG_EVERY = 3 * _MINUTE, 10 * _MINUTE
"""How often a pod of a whole node comes, and a gang: together they ask for 23% of the GPUs."""
_LOAD = 95
"""Percent of all GPUs that the stream asks for: small pods make up what big claims leave."""
_STATED_IN = 5 * _MINUTE
"""Stated ends are rounded up to this: people write 15 or 20 minutes, not 17."""
_WARM_UP, _LENGTH = 60 * _MINUTE, 240 * _MINUTE
"""Figures are about the three hours after the first, in which the cluster fills up."""
_NEVER = 1_000_000 * _MINUTE


def reservations(progress: Callable[[str], None]) -> list[Figure]:
    """The stream without reservations, with them and no end known, and with all ends stated."""
    progress("four hours of 64 nodes without reservations")
    without = _play(_NEVER, stated=False)
    figures = _figures(without, "without reservations")
    ratios: list[Figure] = []
    for stated, known in ((False, "no end is known"), (True, "all ends are stated")):
        progress(f"four hours of 64 nodes with reservations; {known}")
        found = _play(PlacementKnobs().reserve_after, stated)
        figures += _figures(found, f"with reservations; {known}")
        ratios += _ratios(found, without, f"with, in ratio to without; {known}")
    return [*figures, *ratios]


@dataclass(slots=True)
class Outcome:
    """What became of a stream."""

    waits: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    """How long claims waited, the shortest first: small ones, and big ones."""
    busy: int = 0
    """GPUs that were in use, times how long, between the warm-up and the last arrival."""

    @property
    def utilisation(self) -> float:
        """The percentage of all GPUs in use, on average."""
        return 100 * self.busy / (_NODES * _CARDS * (_LENGTH - _WARM_UP))

    def wait(self, big: bool, percentile: int) -> float:
        """Minutes that claims waited."""
        waits = self.waits[big]
        return waits[min(len(waits) * percentile // 100, len(waits) - 1)] / _MINUTE


def _figures(found: Outcome, on: str) -> list[Figure]:
    return [
        Figure("GPUs in use", found.utilisation, "%", on=on),
        Figure("wait of a big claim, median", found.wait(True, 50), "min", on=on),
        Figure("wait of a big claim, p99", found.wait(True, 99), "min", on=on),
        Figure("the longest of them", found.wait(True, 100), "min", on=on),
        Figure("wait of a small pod, median", found.wait(False, 50), "min", on=on),
        Figure("wait of a small pod, p99", found.wait(False, 99), "min", on=on),
    ]


def _ratios(found: Outcome, without: Outcome, on: str) -> list[Figure]:
    longest = found.wait(True, 100) / without.wait(True, 100)
    in_use = 100 * found.utilisation / without.utilisation
    return [
        Figure("GPUs in use, of those without", in_use, "%", on=on),
        Figure("the longest wait of a big claim", longest, "x", on=on),
    ]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim that comes, and how long its pods run."""

    pods: tuple[Pod, ...]
    runs: int
    gang: Gang | None = None


def _play(reserve_after: int, stated: bool) -> Outcome:
    """Play the stream until its last claim has started."""
    engine = Engine("capacity", Knobs(placement=PlacementKnobs(reserve_after=reserve_after)))
    for event in _cluster():
        engine.apply(event)
    arriving = deque(sorted(_stream(stated), key=lambda each: each.pods[0].created))
    known = {pod.uid: claim for claim in arriving for pod in claim.pods}
    ends: list[tuple[int, str]] = []
    found, waiting, now = Outcome(), len(known), 0
    while waiting:
        now = _next(arriving, ends, engine.next_deadline())
        while arriving and arriving[0].pods[0].created <= now:
            _arrive(engine, arriving.popleft())
        while ends and ends[0][0] <= now:
            _end(engine, known[heappop(ends)[1]])
        for decision in engine.cycle(now):
            if isinstance(decision, Bind):
                waiting -= 1
                claim = known[decision.pod.uid]
                engine.apply(PodSet(replace(decision.pod, node=decision.node, started=now)))
                if decision.pod.uid == claim.pods[0].uid:
                    heappush(ends, (now + claim.runs, decision.pod.uid))
                    _note(found, claim, now)
    for waits in found.waits.values():
        waits.sort()
    return found


def _next(arriving: deque[_Claim], ends: list[tuple[int, str]], deadline: int | None) -> int:
    """When something happens next."""
    moments = [arriving[0].pods[0].created] if arriving else []
    moments += [ends[0][0]] if ends else []
    moments += [deadline] if deadline is not None else []
    return min(moments)


def _arrive(engine: Engine, claim: _Claim) -> None:
    if claim.gang is not None:
        engine.apply(GangSet(claim.gang))
    for pod in claim.pods:
        engine.apply(PodSet(pod))


def _end(engine: Engine, claim: _Claim) -> None:
    for pod in claim.pods:
        engine.apply(PodGone(pod.uid))
    if claim.gang is not None:
        engine.apply(GangGone(claim.gang.name))


def _note(found: Outcome, claim: _Claim, now: int) -> None:
    """A claim has started."""
    cards = sum(dict(pod.shape.requests)[GPU] for pod in claim.pods)
    created = claim.pods[0].created
    if created >= _WARM_UP:
        found.waits[cards >= _CARDS].append(now - created)
    seen = min(now + claim.runs, _LENGTH) - max(now, _WARM_UP)
    found.busy += cards * max(seen, 0)


def _cluster() -> Iterator[Event]:
    has = (("cpu", 96_000), (GPU, _CARDS), ("pods", 110))
    for number in range(_NODES):
        yield NodeSet(Node(f"node-{number}", has))
    low = ((GPU, _NODES * _CARDS // _TEAMS),)
    for number in range(_TEAMS):
        team = f"team-{number}"
        yield QuotaSet(Quota(f"{team}/q", low, namespaces=frozenset({team})))


def _stream(stated: bool) -> Iterator[_Claim]:
    """The claims that come in four hours: the same ones, whether or not their ends are stated."""
    mean = sum(_RUN) // 2
    big = _CARDS * mean // _SINGLE_EVERY + _GANG * _CARDS * mean // _GANG_EVERY
    small = _NODES * _CARDS * _LOAD // 100 - big
    small_every = sum(_SMALL) * mean // (len(_SMALL) * small)
    rng = random.Random(_NODES)
    kinds = (("small", small_every, 1), ("single", _SINGLE_EVERY, 1), ("gang", _GANG_EVERY, _GANG))
    for kind, every, pods in kinds:
        created = number = 0
        while (created := created + rng.randrange(2 * every)) < _LENGTH:
            cards = rng.choice(_SMALL) if kind == "small" else _CARDS
            team = f"team-{number % (_TEAMS // 2) + (_TEAMS // 2 if kind == 'small' else 0)}"
            runs = rng.randrange(*_RUN)
            number += 1
            name = f"{kind}-{number}"
            gang = Gang(f"{team}/{name}", pods, created=created) if pods > 1 else None
            first = Pod(
                uid=name,
                namespace=team,
                name=name,
                shape=Shape((("cpu", 4_000 * cards), (GPU, cards), ("pods", 1))),
                created=created,
                preempts=False,
                gang=None if gang is None else gang.name,
                expected_duration=-(-runs // _STATED_IN) * _STATED_IN if stated else None,
            )
            members = (replace(first, uid=f"{name}-{i}", name=f"{name}-{i}") for i in range(pods))
            yield _Claim(tuple(members), runs, gang)
