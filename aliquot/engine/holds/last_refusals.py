"""Last refusals: what still refuses a claim, as long as nothing that it depends on has changed.

While starts are withdrawn, each withdrawal wakes all claims that could use what it gives back, the
claim for which it was made takes that, and nearly all others are refused again: by the same sum of
min, or since the same nodes lack the same. Of a claim that can reclaim nothing, since it would be
above its quota's min in what it lacks, and preempt nothing, as its quota has no pods of lower
priority, that is told without a trial: by what its quota uses, by that sum, and by the nodes that
have changed since. Such refusals are kept until the cycle ends.
"""

from typing import NamedTuple

import numpy as np

from aliquot.engine.eviction_brake import EvictionBrake
from aliquot.engine.holds.fresh_starts import FreshStarts
from aliquot.engine.holds.reservation import Reservations
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.placement.ask import Ask
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.effort import Effort
from aliquot.engine.queue.lane import Lane
from aliquot.engine.state import State

_MOST_ROWS = 60
"""What a node is short of is a bit for each resource of an ask, in an int64."""


class _Kept(NamedTuple):
    """A refusal, and the figures with which it was told."""

    claim: Claim
    refusal: Refusal
    row: int | None
    """The resource of which the sum of min lacks too much; None if the nodes lack room."""
    shortages: int
    """Which nodes were short of what, as a version; for claims that the nodes refuse."""
    owed: tuple[int, ...]
    """The resources in which it could reclaim if any other quota used more than its min."""
    used: list[int]
    """What its quota used of what it asks for."""
    shown: int
    """How often starts had been shown to the victim search."""


class LastRefusals:
    """The refusals of this cycle that hold while their figures do, by lane."""

    def __init__(
        self,
        state: State,
        policy: Policy,
        fresh_starts: FreshStarts,
        reservations: Reservations,
        brake: EvictionBrake,
    ) -> None:
        self._state = state
        self._policy = policy
        self._fresh_starts = fresh_starts
        self._reservations = reservations
        self._brake = brake
        self._shortages = _Shortages(state)
        self._usage = state.changes.usage.cursor(deciding=True)
        self._borrowers: dict[int, set[int] | None] = {}
        """The accounts above their min, by row, as long as no usage changes."""
        self._kept: dict[Lane, _Kept] = {}

    def begin(self) -> None:
        """Begin a cycle: anything may have changed since the last."""
        self._kept.clear()
        self._shortages.clear()
        self._usage.read()
        self._borrowers.clear()

    def note(self, lane: Lane, claim: Claim, refusal: Refusal, now: int) -> None:
        """The first claim of a lane was refused: keep that if it can be told again by figures."""
        self._kept.pop(lane, None)
        if self.finds_no_victims(claim, refusal, now):
            row = self._row(refusal)
            shortages = self._shortages.version(claim.asks[0]) if row is None else 0
            figures = row, shortages, self._owed(claim, row), self._used(claim)
            self._kept[lane] = _Kept(claim, refusal, *figures, self._fresh_starts.shown)

    def finds_no_victims(self, claim: Claim, refusal: Refusal, now: int) -> bool:
        """Is it sure without a search that no pods can be evicted for a refused claim?

        To be asked while a cycle tries claims.
        """
        by_sum = refusal.reason is Reason.BORROWING_EXHAUSTED and refusal.resource is not None
        if not by_sum and refusal.reason is not Reason.NO_NODE_FITS:
            return False
        if not (self._is_calm() and self._is_plain(claim) and self._cannot_preempt(claim, now)):
            return False
        return not self._is_borrowed_in(self._owed(claim, self._row(refusal)), claim)

    def _row(self, refusal: Refusal) -> int | None:
        """The resource of which the sum of min lacks too much, if that is the reason."""
        by_sum = refusal.reason is Reason.BORROWING_EXHAUSTED
        return self._state.resources.row(str(refusal.resource)) if by_sum else None

    def park_again(self, lane: Lane, claim: Claim, effort: Effort) -> bool:
        """Is it sure without a trial that the claim is refused as before? Then park its lane.

        It counts as tried all the same: what bounded cycles decide does not depend on it.
        """
        refusal = self._of(lane, claim) if effort.may_search else None
        if refusal is None:
            return False
        effort.note_trial(holding=False)
        effort.note_search()
        self._state.waiting.park(lane, refusal)
        self._fresh_starts.note_refused(lane)
        return True

    def _of(self, lane: Lane, claim: Claim) -> Refusal | None:
        """The refusal that a trial of the lane's first claim would end with, if that is sure."""
        kept, fresh = self._kept.get(lane), self._fresh_starts
        if kept is None or kept.claim is not claim or lane.has_unreported:
            return None
        if kept.shown != fresh.shown or kept.used != self._used(claim) or not self._is_calm():
            return None
        if fresh.comes_before_own(claim) or self._policy.gates.exceeded_row(claim) != kept.row:
            return None
        if kept.row is None and self._shortages.version(claim.asks[0]) != kept.shortages:
            return None
        return None if self._is_borrowed_in(kept.owed, claim) else kept.refusal

    def _used(self, claim: Claim) -> list[int]:
        """What the claim's quota uses of what the claim asks for."""
        used, slot = self._state.ledger.used, self._state.tree.slots[str(claim.quota)]
        return [used.get(row, slot) for row, _ in claim.asks[0].charge(None)]

    def _is_calm(self) -> bool:
        """Is nothing held, does no pod leave, and does no claim wait for the eviction brake?"""
        ledger, leaving = self._state.ledger, self._state.leaving
        return not (ledger.holding or len(leaving) or leaving.overdue or self._brake.refused_any)

    def _is_plain(self, claim: Claim) -> bool:
        """Is it one pod of a quota, charged alike on all nodes, without devices and rules?

        And are there no bounds that it shares with other quotas but the sum of min?
        """
        state, ask = self._state, claim.asks[0]
        if claim.quota is None or claim.size > 1 or claim.members != claim.pods or claim.missing:
            return False
        if len(ask.room) > _MOST_ROWS:
            return False
        if ask.by_class or ask.gpu is not None or ask.rule_set is not None or claim.topology:
            return False
        if not claim.preemptible or state.gpu_quotas.known or state.model_mins:
            return False
        own = state.tree.slots[claim.quota]
        return all(slot == own for slot, _ in state.tree.ceilings(claim.quota))

    def _cannot_preempt(self, claim: Claim, now: int) -> bool:
        """Are there no pods that it could evict by priority, or since they are late to end?"""
        state = self._state
        if state.knobs.eviction.quotaless == "lowest" or self._policy.gates.is_owed(claim):
            return False
        if claim.is_critical(state.knobs.system_namespaces):
            return False
        own = state.tree.slots[str(claim.quota)]
        lower = state.bound_pods.has_lower(own, claim.priority)
        return not (lower or self._reservations.overstayed(claim, now))

    def _owed(self, claim: Claim, row: int | None) -> tuple[int, ...]:
        """The resources in which it may reclaim: none, if it is above min in all that it lacks.

        It lacks this resource, or else room on the nodes.
        """
        if not len(self._state.bound_pods):
            return ()
        sums, may_reclaim = self._state.tree.sums_of_min, self._policy.reclaim.may_reclaim
        shared = {each for each, _ in claim.charge(None) if sums[each] >= 0}
        beyond = {each for each in shared if not may_reclaim(claim, each)}
        if row is None and beyond:
            above = self._shortages.include(claim.asks[0], beyond, shared)
        else:
            above = row in beyond
        return () if above else tuple(sorted(shared - beyond))

    def _is_borrowed_in(self, rows: tuple[int, ...], claim: Claim) -> bool:
        """Does another quota use more than its min of one of these resources?"""
        if not rows:
            return False
        if self._usage:
            self._usage.read()
            self._borrowers.clear()
        own = self._state.tree.slots[str(claim.quota)]
        for row in rows:
            if row not in self._borrowers:
                self._borrowers[row] = self._policy.reclaim.borrowers(row)
            found = self._borrowers[row]
            if found is None or not found <= {own}:
                return True
        return False


class _Short:
    """Which nodes are short of what for one ask."""

    def __init__(self, codes: list[int], read: int) -> None:
        self.codes = codes
        """By slot, a bit for each resource that the ask names."""
        self.version = 0
        self.read = read
        """How many changes of nodes were looked at."""


class _Shortages:
    """Which nodes are short of what, by ask; only nodes that have changed are looked at again."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._log = state.changes.nodes.cursor(deciding=True)
        self._changed: list[int] = []
        self._of: dict[Ask, _Short] = {}

    def clear(self) -> None:
        """Forget all asks: their claims are tried first in each cycle."""
        self._log.read()
        self._changed.clear()
        self._of.clear()

    def version(self, ask: Ask) -> int:
        """Equal as long as the same nodes are short of the same."""
        return self._refreshed(ask).version

    def include(self, ask: Ask, rows: set[int], shared: set[int]) -> bool:
        """Is every node short of one of these rows, or of nothing that quotas share?"""
        room = [row for row, _ in ask.room]
        shorts = (
            shared.intersection(row for bit, row in enumerate(room) if code >> bit & 1)
            for code in set(self._refreshed(ask).codes)
        )
        return shared.issubset(room) and all(not each or each & rows for each in shorts)

    def _refreshed(self, ask: Ask) -> _Short:
        self._changed += self._log.read()
        found = self._of.get(ask)
        if found is None:
            found = self._of[ask] = _Short(self._computed(ask), len(self._changed))
        for node in dict.fromkeys(self._changed[found.read :]):
            code = self._code(ask, node)
            found.version += code != found.codes[node]
            found.codes[node] = code
        found.read = len(self._changed)
        return found

    def _computed(self, ask: Ask) -> list[int]:
        """The codes of all nodes."""
        state, count = self._state, len(self._state.nodes.slots)
        codes = np.zeros(count, dtype=np.int64)
        for bit, (row, amount) in enumerate(ask.room):
            free = state.nodes.allocatable.data[row, :count] - state.ledger.taken.data[row, :count]
            codes |= (free < amount).astype(np.int64) << bit
        found: list[int] = codes.tolist()
        return found

    def _code(self, ask: Ask, node: int) -> int:
        """The code of one node."""
        has, taken, code = self._state.nodes.allocatable, self._state.ledger.taken, 0
        for bit, (row, amount) in enumerate(ask.room):
            if has.get(row, node) - taken.get(row, node) < amount:
                code |= 1 << bit
        return code
