"""Reservations: room and right are held for a gang, so that smaller claims do not starve it.

A gang that finds no room for all of its pods is passed by claims that fit. Once a claim of no
higher priority has passed it and it has waited for `holdFor`, its pods get nodes where they would
fit soonest, and what comes free there is held for them. That lasts for `holdFor` at most; then
other claims may pass again, for as long. Only one gang has a reservation at a time, so that little
capacity is idle because of reservations.
"""

from collections.abc import Iterable

import numpy as np

from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.model.decisions import Nominate
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_CAN_BE_PASSED = (
    Reason.NO_NODE_FITS,
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.QUEUE_OVER_DESERVED,
)


class Reservations:
    """Which gangs wait for room, since when, and which of them were passed."""

    def __init__(
        self, state: State, policy: Policy, nominations: Nominations, hold_for: int
    ) -> None:
        self._state = state
        self._policy = policy
        self._nominations = nominations
        self._hold_for = hold_for
        self._since: dict[str, int] = {}
        """When a gang was first refused, by its name."""
        self._unpassed: dict[int, dict[str, None]] = {}
        """The gangs that no claim has passed so far, by priority."""
        self._passed: set[str] = set()
        self._reserved: tuple[str, ...] = ()
        self._due: int | None = None
        """No later than when the first passed gang will have waited long enough."""

    def note_refused(self, claim: Claim, refusal: Refusal, now: int) -> None:
        """Note a refused claim, if it is a gang that other claims can pass."""
        if claim.size > 1 and claim.gang is not None and refusal.reason in _CAN_BE_PASSED:
            self._since.setdefault(claim.gang, now)
            if claim.gang not in self._passed:
                self._unpassed.setdefault(claim.priority, {})[claim.gang] = None

    def note_started(self, claim: Claim) -> None:
        """A claim has started: the waiting gangs of the same or higher priority were passed."""
        self._since.pop(claim.gang or "", None)
        for priority in [each for each in self._unpassed if each >= claim.priority]:
            passed = self._unpassed.pop(priority).keys() & self._since.keys()
            deadlines = (self._due, self._first_due(passed))
            self._due = min((each for each in deadlines if each is not None), default=None)
            self._passed |= passed

    def deadline(self) -> int | None:
        """When a passed gang will have waited long enough for a reservation."""
        return None if self._due is None or self._active() else self._due

    def reserve(self, now: int) -> list[Nominate]:
        """Reserve for the most important gang that was passed and has waited long enough."""
        if self._due is None or self._due > now or self._active():
            return []
        claims = {gang: claim for gang in self._since if (claim := self._claim(gang)) is not None}
        self._since = {gang: since for gang, since in self._since.items() if gang in claims}
        self._passed &= claims.keys()
        due = [gang for gang in self._passed if self._since[gang] + self._hold_for <= now]
        nominated: list[Nominate] = []
        for gang in sorted(due, key=lambda gang: claims[gang].key):
            if not nominated:
                self._passed.discard(gang)
                self._since[gang] = now + self._hold_for
                nominated = self._reserve(claims[gang], now)
        self._due = self._first_due(self._passed)
        return nominated

    def _first_due(self, gangs: Iterable[str]) -> int | None:
        return min((self._since[gang] + self._hold_for for gang in gangs), default=None)

    def _active(self) -> bool:
        """Does a gang have a reservation?"""
        return any(uid in self._state.ledger.holding for uid in self._reserved)

    def _claim(self, gang: str) -> Claim | None:
        """The waiting claim of a gang's core, if there is one."""
        for uid in self._state.gangs.members.get(gang, ()):
            if uid in self._state.waiting:
                claim = self._state.waiting.claim(uid)
                not_a_core = claim.size == 1 or claim.missing or claim.parts
                return None if not_a_core else claim
        return None

    def _reserve(self, claim: Claim, now: int) -> list[Nominate]:
        """Hold room and right for a gang, if its quotas could let it start and nodes could fit."""
        state = self._state
        nodes = self._nodes(claim) if self._policy.gates.could_start(claim) else None
        if nodes is None:
            return []
        for pod, node in zip(claim.pods, nodes, strict=True):
            state.ledger.hold(pod.uid, state.bookings.booking(pod, claim.quota, node))
        self._nominations.nominate(claim, (), now)
        self._reserved = claim.uids()
        state.waiting.add(state.claims.of(claim.pods, claim.others))
        return [Nominate(claim.pods, tuple(nodes))]

    def _nodes(self, claim: Claim) -> list[str] | None:
        """A node for each pod once other pods have ended, the nodes that lack least first.

        Nodes nominated for other claims are left out.
        """
        state, count = self._state, len(self._state.nodes.slots)
        rows = sorted({row for ask in claim.asks for row, _ in ask.room})
        has = {row: state.nodes.allocatable.data[row][:count].copy() for row in rows}
        free = {row: state.placement.free_soon(row, state.leaving.room)[:count] for row in rows}
        kept = np.zeros(count, dtype=bool)
        kept[[state.ledger.entries[uid].node for uid in state.ledger.holding]] = True
        chosen = []
        for ask in claim.asks:
            possible = state.placement.open_nodes(ask) & ~kept
            shortage = np.zeros(count)
            for row, amount in ask.room:
                possible &= has[row] >= amount
                shortage += np.maximum(amount - free[row], 0) / amount
            if not possible.any():
                return None
            found = np.flatnonzero(possible)
            best = int(found[np.lexsort((state.nodes.rank[found], shortage[found]))[0]])
            for row, amount in ask.room:
                has[row][best] -= amount
                free[row][best] -= amount
            chosen.append(str(state.nodes.slots.names[best]))
        return chosen
