"""When a waiting pod will start: what runs is played forward in virtual time, by the same engine.

How long pods still run is drawn (`durations`), for each of some plays anew, and so is what comes
meanwhile (`arrivals`); the engine decides what starts when. Of the plays, the median and the tenth
and ninetieth percent are told, and what they rest on. Draws are seeded, so the same question has
the same answer. Where too little is known of what runs, or the pod starts in too few plays, there
is no estimate.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from aliquot.dialects.core.times import seconds
from aliquot.questions import copies
from aliquot.questions.arrivals import Arrivals
from aliquot.questions.durations import Durations
from aliquot.questions.moment import Moment
from aliquot.simulation.simulation import Simulation

Result = dict[str, Any]
PLAYS = 19
"""So that the second, the middle and the second but last of them are the quantiles that are told:
with ten times as many, they would move by a tenth of the range."""
_MOST_MOMENTS = 2_000
"""Moments of one play: on a small cluster, a second's work."""
_MOST_MOMENTS_OF_MANY = 400
"""The same where all that wait are asked about, of which some may wait for ever."""
_LEAST_STARTED = 10
"""Of the plays: where the pod starts in fewer, not even the middle is known."""


def estimate(moment: Moment, path: str) -> Result | None:
    """Seconds until the pod starts, with a range and what it rests on; None if unknown.

    On a large cluster there is none: to play it forward takes longer than a question may.
    """
    record = moment.pod(path)
    if record is None or moment.is_large:
        return None
    return estimate_of(moment.simulation, record.pod.uid)


def estimate_of(simulation: Simulation, uid: str, plays: int = PLAYS) -> Result | None:
    """The same for a pod that waits in a simulation, which stays as it is."""
    return estimates_of(simulation, [uid], plays, _MOST_MOMENTS).get(uid)


def estimates_of(
    simulation: Simulation,
    uids: Sequence[str],
    plays: int = PLAYS,
    most: int = _MOST_MOMENTS_OF_MANY,
) -> dict[str, Result]:
    """The estimates of several waiting pods, from the same plays; those not known are left out."""
    waits, bases = {uid: list[int]() for uid in uids}, dict[str, None]()
    known = Durations(simulation), Arrivals(simulation)
    for number in range(plays):
        found = copies.ask(lambda number=number: _play(simulation, *known, uids, number, most))  # type: ignore[misc]
        if found is None:
            return {}
        started, basis = found
        bases.update(dict.fromkeys(basis))
        for uid, wait in started.items():
            waits[uid].append(wait)
    words = " and ".join(sorted(bases)) or "no pod has to end"
    return {
        uid: _told(found, plays, words)
        for uid, found in waits.items()
        if found and len(found) * PLAYS >= _LEAST_STARTED * plays
    }


def _told(waits: list[int], plays: int, basis: str) -> Result:
    """The quantiles of plays, in some of which the pod may never have started."""
    ordered = [*sorted(waits), *[max(waits)] * (plays - len(waits))]
    low, middle, high = (ordered[_place(plays, part)] for part in (10, 50, 90))
    return {"seconds": seconds(middle), "p10": seconds(low), "p90": seconds(high), "basis": basis}


def _place(plays: int, percent: int) -> int:
    return min(max(round(percent * (plays + 1) / 100) - 1, 0), plays - 1)


def _play(
    simulation: Simulation,
    durations: Durations,
    arrivals: Arrivals,
    uids: Sequence[str],
    number: int,
    most: int,
) -> tuple[dict[str, int], list[str]] | None:
    """When pods start in one play, from now, and what that rests on; None if nothing is known.

    Pods of which nothing is known run on.
    """
    rng, now, world = Random(number), simulation.now, simulation.world
    bases, running = dict[str, None](), 0
    for each, record in list(world.mirror.records.items()):
        if not record.alive:
            continue
        found = durations.remaining(record, now, rng)
        if found is None:
            record.duration = None
            continue
        remaining, basis = found
        if record.phase == "Running":
            bases[basis] = None
            running += 1
        world.expect(each, remaining, now)
    simulation.expect_changes(arrivals.coming(durations, rng))
    started = simulation.play_until_started(uids, most)
    if not running and not started:
        return None
    return {uid: at - now for uid, at in started.items()}, list(bases)
