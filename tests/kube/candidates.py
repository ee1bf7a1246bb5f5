"""Several candidates for one Lease, on machines whose clocks differ, over a network that fails.

A request takes its time to the server and back; the request or its answer may be lost; whoever has
waited too long goes on without the answer, and what it sent may still be carried out. The server
keeps versions, as API servers do. Time is virtual, and every fate is drawn by the test.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from aliquot.kube.leader.leader_rules import Candidate, Read, Step, Term, Timing, Wait, Write

TIMING = Timing()
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Fate:
    """What becomes of a request: seconds there and back, None for lost."""

    there: float | None = 0.05
    back: float | None = 0.05


@dataclass(frozen=True)
class Clock:
    """A machine's clock: where it started, how fast it runs, and how wrong its date is."""

    offset: float = 0.0
    rate: float = 1.0
    wrong: float = 0.0

    def read(self, at: float) -> float:
        return self.offset + self.rate * at

    def wall(self, at: float) -> datetime:
        return START + timedelta(seconds=at + self.wrong)

    def lasts(self, seconds: float) -> float:
        """How long its seconds take."""
        return seconds / self.rate


@dataclass
class Server:
    """One Lease, with optimistic concurrency."""

    term: Term | None = None
    version: int = 0

    def carry_out(self, step: Read | Write) -> tuple[bool, Term | None, str]:
        """Whether it was accepted, and what the Lease says now."""
        accepted = True
        if isinstance(step, Write):
            accepted = step.version == (None if self.term is None else str(self.version))
            if accepted:
                self.edit(step.term)
        return accepted, self.term, str(self.version)

    def edit(self, term: Term | None) -> None:
        """Change it, whatever the version."""
        self.term, self.version = term, self.version + 1


@dataclass
class Member:
    """A candidate, its machine, and the fates of its requests."""

    candidate: Candidate
    clock: Clock
    fates: Iterator[Fate]
    alive: bool = True
    request: int = 0
    """The one whose answer it waits for."""

    def die(self) -> None:
        self.alive = False


@dataclass
class World:
    """Everything that happens, in order of time."""

    server: Server = field(default_factory=Server)
    members: list[Member] = field(default_factory=list)
    at: float = 0.0
    check: Callable[["World"], None] = lambda world: None
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        heappush(self._due, (self.at + seconds, next(self._numbers), what))

    def run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            self.at, _, what = heappop(self._due)
            what()
            self.check(self)
        self.at = until
        self.check(self)

    def join(self, clock: Clock, fates: Iterator[Fate], after: float = 0.0) -> Member:
        name = f"candidate-{len(self.members)}"
        member = Member(Candidate(name, TIMING), clock, fates)
        self.members.append(member)
        self.later(after, lambda: self.turn(member))
        return member

    def holders(self) -> list[str]:
        return [
            member.candidate.identity
            for member in self.members
            if member.alive and member.candidate.holds(member.clock.read(self.at))
        ]

    def turn(self, member: Member) -> None:
        """Let it do what it wants to do next."""
        if not member.alive:
            return
        now = member.clock.read(self.at)
        step: Step = member.candidate.step(now, member.clock.wall(self.at))
        if isinstance(step, Wait):
            self.later(self._pause(member, step.seconds), lambda: self.turn(member))
        else:
            self._send(member, step)

    def _pause(self, member: Member, seconds: float) -> float:
        return member.clock.lasts(min(seconds, TIMING.retry))

    def _send(self, member: Member, step: Read | Write) -> None:
        member.request = number = next(self._numbers)
        fate, sent = next(member.fates), member.clock.read(self.at)

        def arrive() -> None:
            answer = self.server.carry_out(step)
            if fate.back is not None:
                self.later(fate.back, lambda: self._answer(member, number, step, answer, sent))

        if fate.there is not None:
            self.later(fate.there, arrive)
        patience = member.clock.lasts(TIMING.deadline / 2)
        self.later(patience, lambda: self._give_up(member, number))

    def _answer(
        self,
        member: Member,
        number: int,
        step: Read | Write,
        answer: tuple[bool, Term | None, str],
        sent: float,
    ) -> None:
        if number != member.request or not member.alive:
            return
        member.request = -1
        accepted, term, version = answer
        if isinstance(step, Read):
            known = None if term is None else version
            member.candidate.saw(term, known, member.clock.read(self.at))
            self.turn(member)
        elif accepted:
            member.candidate.wrote(step.term, version, sent)
            self.later(self._pause(member, TIMING.retry), lambda: self.turn(member))
        else:
            member.candidate.unsure()
            self.turn(member)

    def _give_up(self, member: Member, number: int) -> None:
        if number == member.request and member.alive:
            member.request = -1
            member.candidate.unsure()
            self.later(self._pause(member, TIMING.retry), lambda: self.turn(member))
