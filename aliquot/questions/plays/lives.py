"""The lives of pods and nodes in a simulation: when each came, began to run, and went.

What a simulation tells its engine is followed, event by event. Comparisons and reports are measured
from these lives alone, so both say the same. To follow never changes what is decided.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from aliquot.engine import (
    Amounts,
    Event,
    Evict,
    NodeGone,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    QuotaSummary,
    Reason,
    quantity,
)
from aliquot.simulation.simulation import Simulation

_MOST_SAMPLES = 400
"""Moments at which the figures of quotas are kept: more than a chart can show."""


@dataclass(slots=True)
class Life:
    """A pod: when it came, began to run, and went."""

    pod: Pod
    came: int
    started: int | None = None
    gone: int | None = None
    evicted: int | None = None
    reason: Reason | None = None
    """Why it was evicted."""

    def waited(self, end: int) -> int:
        """How long it waited, up to the end of the simulation."""
        return self.waited_until(end) - self.came

    def waited_until(self, end: int) -> int:
        """When it no longer waited."""
        return next((each for each in (self.started, self.gone) if each is not None), end)

    def ran(self, end: int) -> int:
        """How long it ran."""
        if self.started is None:
            return 0
        return (end if self.gone is None else self.gone) - self.started


@dataclass(slots=True)
class Stay:
    """A node with what it had, from one moment to another; `until` is None at the end."""

    node: str
    has: Amounts
    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of all quotas, and from when to when they were about these."""

    since: int
    until: int
    quotas: tuple[QuotaSummary, ...]


@dataclass(slots=True)
class Lives:
    """All pods and nodes of a simulation."""

    now: int = 0
    told: Callable[[int], None] = lambda moment: None
    """Called with each moment, so that progress can be shown."""
    of: dict[str, Life] = field(default_factory=dict)
    stays: list[Stay] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    sampled: bool = False
    """Are the figures of quotas kept as well? Only reports show them over time."""
    _there: dict[str, Stay] = field(default_factory=dict)
    _since: int = 0
    _apart: int = 0
    """How far samples are apart at least: it doubles whenever there are too many."""

    def follow(self, simulation: Simulation) -> None:
        """Follow a simulation that has not run yet."""
        simulation.listeners.append(self.note)

        def passed(moment: int) -> None:
            if self.sampled:
                self._sample(simulation, moment)
            self.now = moment
            self.told(moment)

        simulation.passed = passed

    def finish(self, simulation: Simulation, end: int) -> None:
        """The simulation has run: note its evictions, and the figures up to the end."""
        for done in simulation.history:
            decision = done.decision
            if isinstance(decision, Evict) and decision.pod.uid in self.of:
                life = self.of[decision.pod.uid]
                life.evicted, life.reason = done.at, decision.reason
        if self.sampled:
            self._apart = 0
            self._sample(simulation, end)

    def note(self, event: Event) -> None:
        """A pod or a node came, changed or went."""
        if isinstance(event, PodSet):
            pod = event.pod
            life = self.of.setdefault(pod.uid, Life(pod, self.now))
            life.pod = pod
            if pod.node is not None and life.started is None:
                life.started = self.now
        elif isinstance(event, PodGone) and event.uid in self.of:
            life = self.of[event.uid]
            life.gone = self.now if life.gone is None else life.gone
        elif isinstance(event, NodeSet):
            has = tuple(each for each in event.node.allocatable if each[1] < quantity.LIMIT)
            known = self._there.get(event.node.name)
            if known is None or known.has != has:
                self._leave(event.node.name)
                self._there[event.node.name] = stay = Stay(event.node.name, has, self.now)
                self.stays.append(stay)
        elif isinstance(event, NodeGone):
            self._leave(event.name)

    def capacity(self, resource: str, end: int) -> Iterator[tuple[int, int, int]]:
        """What nodes had of a resource: from when, to when, how much."""
        for stay in self.stays:
            amount = dict(stay.has).get(resource, 0)
            if amount:
                yield stay.since, end if stay.until is None else stay.until, amount

    def _leave(self, name: str) -> None:
        stay = self._there.pop(name, None)
        if stay is not None:
            stay.until = self.now

    def _sample(self, simulation: Simulation, moment: int) -> None:
        """Keep the figures that held until this moment, unless the last ones are recent enough."""
        if moment <= self._since or moment - self._since < self._apart:
            return
        figures = tuple(simulation.engine.summarise())
        self.samples.append(Sample(self._since, moment, figures))
        self._since = moment
        if len(self.samples) > _MOST_SAMPLES:
            self.samples = [_joined(*pair) for pair in _pairs(self.samples)]
            self._apart = max(2 * self._apart, self._since // _MOST_SAMPLES)


def _pairs(samples: list[Sample]) -> Iterator[tuple[Sample, Sample]]:
    for place in range(0, len(samples), 2):
        yield samples[place], samples[min(place + 1, len(samples) - 1)]


def _joined(one: Sample, other: Sample) -> Sample:
    """Both as one, with the figures of the longer."""
    longer = one if one.until - one.since >= other.until - other.since else other
    return Sample(one.since, other.until, longer.quotas)
