"""The rules of leader election for one candidate, without clock or connection.

At most one candidate holds the Lease at any time, whatever is late, lost or refused, for three
reasons. The holder counts `deadline` from before it sent a renewal, other candidates count the
longer `duration` from after they saw it. Every write names the resourceVersion it replaces, so that
one that arrives late changes nothing. And a Lease that another candidate wrote, or that is missing,
counts as held from when it was first seen; only one that was given back in full is free at once.
All times are read on the candidate's own clock; times of other machines are never compared.
"""

import math
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.errors import InputError

_NEVER = -math.inf
_LATE = 32
"""How many of its own renewals a candidate recognises: one is under way at a time, so that even
a late answer is far fewer renewals old."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: others wait `duration`, the holder stops at `deadline`, all try each `retry`.

    The time between deadline and duration is for writes that are under way at the deadline, and for
    clocks that run faster than others. The defaults are those of kube-scheduler.
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
    """The spec of a Lease. Times are text, and only ever compared for equality."""

    holder: str = ""
    seconds: int | None = None
    acquired: str | None = None
    renewed: str | None = None
    transitions: int = 0

    @property
    def free(self) -> bool:
        """Given back in full, or never held; a Lease with only its holder erased is not free."""
        return not self.holder and not self.renewed


@dataclass(frozen=True, slots=True)
class Read:
    """Step: read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Step: replace the Lease if it has this resourceVersion; None: create it."""

    term: Term
    version: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Step: do nothing for at least so many seconds."""

    seconds: float


Step = Read | Write | Wait


class Candidate:
    """A replica that wants the Lease: is told what was read and written, names the next step."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.term: Term | None = None
        """The Lease as last seen."""
        self.transitions = 0
        self._version: str | None = None
        self._sure = False
        """Is `term` still what the Lease says, as far as known, so that a write may replace it?"""
        self._taken_until = _NEVER
        """Until when another candidate may hold the Lease."""
        self._held_until = _NEVER
        self._leaving = False
        self._last: datetime | None = None
        self._stamps: deque[str] = deque(maxlen=_LATE)
        """Times of this candidate's last renewals; a Lease with one of them was written by it."""

    def holds(self, now: float) -> bool:
        """Does it hold the Lease? Turns false by itself; one comparison, safe in any thread."""
        return now < self._held_until

    def left(self, now: float) -> float:
        """For how many seconds it holds the Lease without another renewal."""
        return max(self._held_until - now, 0.0)

    def step(self, now: float, wall: datetime) -> Step:
        """The next step; `wall` is written into the Lease, and only people read it there."""
        if not self._sure:
            return Read()
        if self._leaving:
            return self._leave()
        if now < self._taken_until:
            self._sure = False
            return Wait(self._taken_until - now)
        return Write(self._own(wall), self._version)

    def saw(self, term: Term | None, version: str | None, now: float) -> None:
        """Note the answer to `Read`: what the Lease says, or that there is none."""
        if term is None:
            self._saw_none(now)
        elif not self._is_own(term):
            self._saw_others(term, now)
        self.term, self._version, self._sure = term, version, True
        if term is not None:
            self.transitions = term.transitions

    def wrote(self, term: Term, version: str, sent: float) -> None:
        """Note that a write, sent at this time, was accepted."""
        self.term, self._version, self._sure = term, version, True
        self.transitions = term.transitions
        self._held_until = _NEVER if self._leaving else sent + self.timing.deadline

    def unsure(self) -> None:
        """Note that a request was refused or not answered: the Lease may have changed."""
        self._sure = False

    def leave(self) -> None:
        """Hold no longer, from now on; the next steps give the Lease back."""
        self._held_until = _NEVER
        self._leaving = True

    def _leave(self) -> Step:
        if self.term is None or not self._is_own(self.term):
            return Wait(math.inf)
        return Write(Term(transitions=self.transitions), self._version)

    def _saw_none(self, now: float) -> None:
        """The Lease was deleted: its holder may not know yet, and writes until its deadline."""
        if self.term is not None and not self.holds(now):
            self._taken_until = now + self.timing.duration

    def _saw_others(self, term: Term, now: float) -> None:
        if term.free:
            self._taken_until = _NEVER
        elif term != self.term:
            self._held_until = _NEVER
            self._taken_until = now + max(self.timing.duration, term.seconds or 0)

    def _is_own(self, term: Term) -> bool:
        """Did this candidate write it? The holder's name alone is no proof: people edit Leases."""
        return term.holder == self.identity and term.renewed in self._stamps

    def _own(self, wall: datetime) -> Term:
        stamp = self._stamp(wall)
        seconds, before = math.ceil(self.timing.duration), self.term
        if before is not None and before.holder == self.identity:
            return Term(self.identity, seconds, before.acquired or stamp, stamp, self.transitions)
        more = 0 if before is None else 1
        return Term(self.identity, seconds, stamp, stamp, self.transitions + more)

    def _stamp(self, wall: datetime) -> str:
        """A time never used before, even if the clock is set back: each renewal must differ."""
        if self._last is not None and wall <= self._last:
            wall = self._last + timedelta(microseconds=1)
        self._last = wall
        self._stamps.append(wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        return self._stamps[-1]
