"""Who holds the Lease, as far as one candidate may believe it: rules without clock or connection.

At most one candidate holds at any time, whatever is late, lost or refused, because of three things.
Whoever holds believes it for a shorter time, from before it sent its renewal, than others leave it
alone, from after they saw that renewal. Every write names the version it replaces, so one that
arrives late changes nothing. And whatever a Lease says that others wrote, or its absence, counts as
somebody's term from when it was first seen; only one that was given back in full is free at once.
All times are read on the candidate's own clock; what other machines' clocks say is never compared.
"""

import math
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.errors import InputError

_NEVER = -math.inf
_LATE = 32
"""How many renewals back one may still arrive: far more than can be under way."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: others wait `duration`, a holder stops at `deadline`, all try again after `retry`.

    What lies between deadline and duration is for writes that are under way at the deadline, and
    for clocks that run faster than others.
    """

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.deadline < self.duration:
            given = f"retry {self.retry}, deadline {self.deadline}, duration {self.duration}"
            raise InputError("lease", "timing", f"needs 0 < retry < deadline < duration: {given}")


@dataclass(frozen=True, slots=True)
class Term:
    """What a Lease says. Times are as written, and only ever compared for being the same."""

    holder: str = ""
    seconds: int | None = None
    acquired: str | None = None
    renewed: str | None = None
    transitions: int = 0

    @property
    def free(self) -> bool:
        """Given back in full, or never held; who only erases the holder has not waited for it."""
        return not self.holder and not self.renewed


@dataclass(frozen=True, slots=True)
class Read:
    """Ask what the Lease says."""


@dataclass(frozen=True, slots=True)
class Write:
    """Make the Lease say this, if it still has this version; None: if there is none."""

    term: Term
    version: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave it alone, for so many seconds at least."""

    seconds: float


Step = Read | Write | Wait


class Candidate:
    """One who would hold the Lease: told what was seen and written, says what to do next."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.term: Term | None = None
        """What the Lease said when it was last seen."""
        self.transitions = 0
        self._version: str | None = None
        self._sure = False
        """May what was last seen be written over?"""
        self._taken_until = _NEVER
        """When nobody else can hold any more, of those who were seen."""
        self._held_until = _NEVER
        self._leaving = False
        self._last: datetime | None = None
        self._stamps: deque[str] = deque(maxlen=_LATE)
        """Times of renewals that were offered; one of them, in a Lease, shows that it is ours."""

    def holds(self, now: float) -> bool:
        """Does it hold the Lease? Turns false by itself; one comparison, safe in any thread."""
        return now < self._held_until

    def left(self, now: float) -> float:
        """For how many seconds it will hold the Lease without a renewal."""
        return max(self._held_until - now, 0.0)

    def step(self, now: float, wall: datetime) -> Step:
        """What to do next; `wall` is only for people who read the Lease."""
        if not self._sure:
            return Read()
        if self._leaving:
            return self._leave()
        if now < self._taken_until:
            self._sure = False
            return Wait(self._taken_until - now)
        return Write(self._own(wall), self._version)

    def saw(self, term: Term | None, version: str | None, now: float) -> None:
        """Take note of an answer to `Read`: what the Lease says, or that there is none."""
        if term is None:
            self._saw_none(now)
        elif not self._is_own(term):
            self._saw_others(term, now)
        self.term, self._version, self._sure = term, version, True
        if term is not None:
            self.transitions = term.transitions

    def wrote(self, term: Term, version: str, sent: float) -> None:
        """Take note that what was written, and sent at this time, was accepted."""
        self.term, self._version, self._sure = term, version, True
        self.transitions = term.transitions
        self._held_until = _NEVER if self._leaving else sent + self.timing.deadline

    def unsure(self) -> None:
        """Take note that a request was refused, or got no answer, and may or may not count."""
        self._sure = False

    def leave(self) -> None:
        """Hold no longer, from now on; what follows is about giving the Lease back."""
        self._held_until = _NEVER
        self._leaving = True

    def _leave(self) -> Step:
        if self.term is None or not self._is_own(self.term):
            return Wait(math.inf)
        return Write(Term(transitions=self.transitions), self._version)

    def _saw_none(self, now: float) -> None:
        """Somebody has deleted it: whoever held it, and does not know yet, has that much time."""
        if self.term is not None and not self.holds(now):
            self._taken_until = now + self.timing.duration

    def _saw_others(self, term: Term, now: float) -> None:
        if term.free:
            self._taken_until = _NEVER
        elif term != self.term:
            self._held_until = _NEVER
            self._taken_until = now + max(self.timing.duration, term.seconds or 0)

    def _is_own(self, term: Term) -> bool:
        """Was it written here? The name alone is no proof: people can write it, too."""
        return term.holder == self.identity and term.renewed in self._stamps

    def _own(self, wall: datetime) -> Term:
        stamp = self._stamp(wall)
        seconds, before = math.ceil(self.timing.duration), self.term
        if before is not None and before.holder == self.identity:
            return Term(self.identity, seconds, before.acquired or stamp, stamp, self.transitions)
        more = 0 if before is None else 1
        return Term(self.identity, seconds, stamp, stamp, self.transitions + more)

    def _stamp(self, wall: datetime) -> str:
        """Never the same twice, even if the clock is set back: others see renewals by it."""
        if self._last is not None and wall <= self._last:
            wall = self._last + timedelta(microseconds=1)
        self._last = wall
        self._stamps.append(wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        return self._stamps[-1]
