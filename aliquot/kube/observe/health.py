"""Health: what the probes answer, written by the main loop and read by the background thread.

A replica is alive while its main loop beats often enough, and a leading one also completes cycles:
an engine that fails again and again decides nothing, however well the loop beats. It is ready once
all caches it waits for are filled; a standby is ready, too, or a rollout would never end.
Violations found by the audit change neither: a restart would not repair them, and would lose the
evidence.
"""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a probe: its name, whether it passed, and a message."""

    name: str
    ok: bool
    message: str


@dataclass(frozen=True, slots=True)
class Invariants:
    """The violations that an audit of the ledger found, and when."""

    at: datetime
    violations: tuple[str, ...]


class Health:
    """The state of the main loop; every method is safe in any thread."""

    def __init__(self, patience: float = 60.0) -> None:
        """A minute without a beat is far above the longest cycle, and far below an outage."""
        self.patience = patience
        """How many seconds may pass between two beats of the main loop."""
        self.found: Invariants | None = None
        """The last audit of the ledger; None before the first."""
        self._beat = (time.monotonic(), "starting")
        self._undecided_since: float | None = None
        self._expected: dict[str, bool] = {}
        self._notes: dict[str, str] = {}
        self._lock = threading.Lock()

    def beat(self, about_to: str = "") -> None:
        """The main loop is alive; `about_to` names what it does next, in case it never returns."""
        self._beat = (time.monotonic(), about_to)

    def expect_decision(self, due: bool) -> None:
        """A cycle is due, or (False) has just been completed."""
        if not due:
            self._undecided_since = None
        elif self._undecided_since is None:
            self._undecided_since = time.monotonic()

    def expect(self, name: str) -> None:
        """Be ready only after `met` was called with this name."""
        with self._lock:
            self._expected[name] = False

    def met(self, name: str) -> None:
        """What `expect` named has come true."""
        with self._lock:
            self._expected[name] = True

    def note(self, name: str, message: str) -> None:
        """Show a message beside the checks of /readyz, which does not decide about them."""
        with self._lock:
            self._notes[name] = message

    def invariants(self, *violations: str) -> None:
        """Keep the violations that an audit of the ledger found."""
        self.found = Invariants(datetime.now(UTC), violations)

    def alive(self) -> list[Check]:
        """The checks of /livez: does the main loop beat, and does it decide?"""
        last, about_to = self._beat
        age = time.monotonic() - last
        message = f"last seen {age:.1f} s ago, {self.patience:g} s allowed"
        if about_to:
            message += f", about to: {about_to}"
        since = self._undecided_since
        late = 0.0 if since is None else time.monotonic() - since
        decides = f"a cycle is due for {late:.1f} s, {self.patience:g} s allowed"
        return [
            Check("main-loop", age <= self.patience, message),
            Check("decisions", late <= self.patience, decides),
        ]

    def ready(self) -> list[Check]:
        """The checks of /readyz: is everything met that was expected?"""
        with self._lock:
            expected, notes = sorted(self._expected.items()), sorted(self._notes.items())
        checks = [Check(name, met, "met" if met else "waited for") for name, met in expected]
        return [*checks, *(Check(name, True, message) for name, message in notes)]
