"""What the probes tell: written by the main loop, read by the side thread.

Alive is a main loop that comes by often enough, however long it is busy in between. Ready is a
replica that has seen everything it was to wait for; one that stands by is ready, too, or a rollout
would never end. What the invariants say changes neither: a restart would not make it better, and
would lose the evidence.
"""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked at: is it well, and what there is to say."""

    name: str
    well: bool
    words: str


@dataclass(frozen=True, slots=True)
class Invariants:
    """What a check of the ledger found, and when: one sentence a violation."""

    at: datetime
    violations: tuple[str, ...]


class Health:
    """The state of the main loop; every method is safe in any thread."""

    def __init__(self, patience: float = 60.0) -> None:
        self.patience = patience
        """How many seconds the main loop may be silent."""
        self.found: Invariants | None = None
        """The last check of the ledger; None before the first."""
        self._beat = (time.monotonic(), "starting")
        self._expected: dict[str, bool] = {}
        self._lock = threading.Lock()

    def beat(self, about_to: str = "") -> None:
        """Say that the main loop is alive, and what it is about to do, in case it never returns."""
        self._beat = (time.monotonic(), about_to)

    def expect(self, name: str) -> None:
        """Be ready only once this is met, too."""
        with self._lock:
            self._expected[name] = False

    def met(self, name: str) -> None:
        """Take note that this has come true."""
        with self._lock:
            self._expected[name] = True

    def invariants(self, *violations: str) -> None:
        """Take note of what a check of the ledger found: nothing, at best."""
        self.found = Invariants(datetime.now(UTC), violations)

    def alive(self) -> list[Check]:
        """Does the main loop come by?"""
        last, about_to = self._beat
        age = time.monotonic() - last
        words = f"last seen {age:.1f} s ago, {self.patience:g} s allowed"
        if about_to:
            words += f", about to: {about_to}"
        return [Check("main-loop", age <= self.patience, words)]

    def ready(self) -> list[Check]:
        """Has everything been seen that was to be waited for?"""
        with self._lock:
            expected = sorted(self._expected.items())
        return [Check(name, met, "met" if met else "waited for") for name, met in expected]
