"""How much longer pods run, as far as their objects and the pods before them tell.

A known end is taken as it is: `activeDeadlineSeconds`, `aliquot.dev/expected-duration`, the end of
a grace period. Else it is drawn from how long pods like it have run: those of the same owner, else
of the same quota and size, else of the quota, else all. Pods that still run count as well, as far
as they have run: to leave them out would make every pod look short (Kaplan and Meier's estimator).
Where no pod like it has ended, what is left is drawn from the ages of those that run: at any one
moment of a steady state both are distributed alike. Pods that a Deployment, StatefulSet or
DaemonSet keeps running end only where their objects say so, and say nothing of others.

A few dozen pods tell how long their like run only roughly, and to take what they show for certain
makes a range too narrow. So each play has a curve of its own, in which every pod counts by a weight
drawn at random: one of the curves that fit what is known (Rubin's Bayesian bootstrap).
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from aliquot.dialects.core.times import timestamp
from aliquot.engine import Pod
from aliquot.mirror.pod_record import PodRecord
from aliquot.simulation.simulation import Simulation

Group = tuple[object, ...]
_LEAST = 1e-9
"""The share of pods that run longer than all that are known: few, and never none."""
_FEW = 5
"""Pods of a group before it is asked: from fewer, the tenth and ninetieth percent are guesses."""


@dataclass(slots=True)
class Curve:
    """The share of pods that run longer than a time, by what is known of some of them."""

    lengths: list[tuple[int, bool]] = field(default_factory=list)
    """How long each ran, and whether it has ended then."""
    _times: list[int] = field(default_factory=list)
    _left: list[float] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """How many have ended."""
        return sum(ended for _, ended in self.lengths)

    def draw(self, so_far: int, rng: Random) -> int:
        """How long a pod that has run for so long still runs."""
        if not self.ended:
            return max(rng.choice(self.lengths)[0], 1)
        self._lay_out(rng)
        at = bisect_right(self._times, so_far)
        now = max(self._left[at - 1], _LEAST) if at else 1.0
        wanted = (1 - rng.random()) * now
        for time, left in zip(self._times[at:], self._left[at:], strict=True):
            if left < wanted:
                return max(time - so_far, 1)
        last, beyond = max(so_far, self._times[-1]), max(self._left[-1], _LEAST)
        return max(int(last * min(beyond / wanted, 100)) - so_far, 1)

    def _lay_out(self, rng: Random) -> None:
        """Once in each play, which is a copy of what was asked."""
        if self._times:
            return
        ordered = sorted(self.lengths, key=lambda pair: (pair[0], not pair[1]))
        weights, left = [rng.expovariate(1) for _ in ordered], 1.0
        running = reversed([*accumulate(reversed(weights))])
        for (length, ended), weight, run in zip(ordered, weights, running, strict=True):
            if ended:
                left *= 1 - weight / run
                self._times.append(length)
                self._left.append(left)


class Durations:
    """What is known of how long pods run, by groups of pods alike."""

    def __init__(self, simulation: Simulation) -> None:
        self._engine = simulation.engine
        self._curves: dict[Group, Curve] = {}
        now = simulation.now
        for record in simulation.world.mirror.records.values():
            known = _length(record, now)
            if known is not None and not record.pod.endless:
                for group in self._groups(record):
                    self._curves.setdefault(group, Curve()).lengths.append(known)

    def _groups(self, record: PodRecord) -> Iterator[Group]:
        """The groups of a pod, those most like it first."""
        quota = self._engine.quota_of(record.pod)
        if record.owner is not None:
            yield "owner", record.owner
        yield "size", quota, record.pod.shape.requests
        yield "quota", quota
        yield ("all",)

    def remaining(self, record: PodRecord, now: int, rng: Random) -> tuple[int, str] | None:
        """How long a pod still runs once it runs, and by what; None if nothing is known."""
        pod = record.pod
        so_far = now - pod.started if record.phase == "Running" and pod.started is not None else 0
        known = _known_end(record, pod, now)
        if known is not None:
            return known, "known ends"
        return self._drawn(record, so_far, rng)

    def whole(self, record: PodRecord, rng: Random) -> int | None:
        """How long another pod like this one runs; None if nothing is known."""
        if record.pod.expected_duration is not None:
            return record.pod.expected_duration
        found = self._drawn(record, 0, rng)
        return None if found is None else found[0]

    def _drawn(self, record: PodRecord, so_far: int, rng: Random) -> tuple[int, str] | None:
        """How long a pod that has run for so long still runs, as others have; and by what."""
        if record.pod.endless:
            return None
        found = [c for g in self._groups(record) if (c := self._curves.get(g)) is not None]
        for curve in found:
            if curve.ended >= _FEW:
                return curve.draw(so_far, rng), "how long pods like these have run"
        for curve in found:
            if sum(length > 0 for length, _ in curve.lengths) >= _FEW:
                return curve.draw(so_far, rng), "how long pods like these run so far"
        return None


def _known_end(record: PodRecord, pod: Pod, now: int) -> int | None:
    """How long a pod still runs, as its objects state it."""
    if record.phase != "Running":
        return pod.expected_duration
    end = pod.expected_end
    return None if end is None else max(end - now, 1)


def _length(record: PodRecord, now: int) -> tuple[int, bool] | None:
    """How long a pod has run, and whether it has ended then."""
    if record.phase == "Running" and record.pod.started is not None:
        return max(now - record.pod.started, 0), False
    if record.phase != "Succeeded":
        return None
    status = record.body.get("status")
    if isinstance(status, dict) and status.get("startTime"):
        times = [
            timestamp(str(found), "", "")
            for each in status.get("containerStatuses") or ()
            if (found := ((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        ]
        start = timestamp(str(status["startTime"]), "", "")
        ends = [each for each in times if each is not None]
        if start is not None and ends:
            return max(max(ends) - start, 0), True
    if record.ended is not None and record.pod.node is not None:
        return max(record.ended - record.started, 0), True
    return None
