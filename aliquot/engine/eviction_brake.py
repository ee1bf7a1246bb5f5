"""The brake: how many pods may be evicted by choice in a minute; none while that is paused.

`eviction.maxPerMinute` and `eviction.maxShare` bound the evictions of any 60 seconds; the lower
bound counts. A preemption whose victims are more than what is left of them is not planned: its
claim waits, nothing is held for it, and it is tried again when they fit. What is left is kept for
the braked claim that comes first in the policy's order: claims behind it wait, claims before it do
not. The victims of one claim go together, so a claim that needs more than the bound waits for a
minute without evictions, and then has them all.

Evictions that are for no claim (lowered bounds, recycling) come after the claims that wait here.
Pods of lost nodes are no choice, and never braked.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.events import Event, EvictionsPaused, EvictionsResumed
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.model.summaries import BrakeSummary
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import precedes
from aliquot.engine.state import State

MINUTE = 60 * SECOND
BRAKED = (Reason.EVICTION_BRAKE, Reason.EVICTIONS_PAUSED)
_BRAKE = Watch(brake=True)
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Braked(Refusal):
    """A refusal by the brake: how many victims the claim needs, and why it needs them."""

    needs: int = 0
    cause: Refusal | None = None


class EvictionBrake:
    """The evictions of the last minute, and the claims that wait for the next ones."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._knobs = state.knobs.eviction
        self.pause: EvictionsPaused | None = None
        """Set while evictions are paused; its end may have come."""
        self._made: deque[tuple[int, int]] = deque()
        """When pods were evicted in the last minute, and how many at that time."""
        self._refused: dict[str, None] = {}
        """The claims that found victims, and were refused by the brake."""
        self._first: tuple[str, int] | None = None
        """The braked claim that comes first, by uid, and how many victims it needs."""
        self._rest_due: int | None = None
        """When evictions for no claim are tried again that were put off."""
        self._was_paused = False

    def apply(self, event: Event) -> None:
        """Evictions may have been paused, or resumed; no other event counts here."""
        if isinstance(event, EvictionsPaused):
            self.pause = event
        elif isinstance(event, EvictionsResumed):
            self.pause = None

    @property
    def limit(self) -> int | None:
        """The most evictions of a minute; None: there is no brake."""
        return min(self._limits().values(), default=None)

    def _limits(self) -> dict[str, int]:
        """Each brake that is set, in words, and the evictions that it lets through in a minute."""
        knobs, found = self._knobs, dict[str, int]()
        if knobs.max_per_minute:
            found[f"eviction.maxPerMinute is {knobs.max_per_minute}"] = knobs.max_per_minute
        if knobs.max_share:
            running = len(self._state.bound_pods) + len(self._state.leaving)
            words = f"eviction.maxShare is {knobs.max_share}% of {running} running pods"
            found[words] = max(running * knobs.max_share // _PERCENT, 1)
        return found

    @property
    def refused_any(self) -> bool:
        """Was a claim refused by it that may still wait?"""
        return bool(self._refused)

    def begin(self, now: int) -> None:
        """Forget the evictions that are older than a minute."""
        while self._made and self._made[0][0] + MINUTE <= now:
            self._made.popleft()
        if len(self._refused) > len(self._state.waiting):
            self._prune()

    def wake(self, now: int) -> None:
        """Let braked claims be tried again, in the policy's order, if the first one may go now."""
        waiting, paused = self._state.waiting, self.is_paused(now)
        resumed, self._was_paused = self._was_paused and not paused, paused
        due = self._first_due(now)
        if resumed or (self._first is not None and not paused and (due is None or due <= now)):
            self._first = None
            self._prune()
            waiting.wake(waiting.parked(_BRAKE))

    def _prune(self) -> None:
        """Forget the claims that wait no longer."""
        self._refused = {uid: None for uid in self._refused if uid in self._state.waiting}

    def is_paused(self, now: int) -> bool:
        """Are evictions paused at this time?"""
        pause = self.pause
        return pause is not None and (pause.until is None or now < pause.until)

    def _first_due(self, now: int) -> int | None:
        """When the first braked claim may have its victims; None if it waits no longer."""
        if self._first is None or self._first[0] not in self._state.waiting:
            return None
        return self._fits_at(self._first[1], now)

    def _fits_at(self, needs: int, now: int) -> int:
        """When so many evictions fit into the minute before, if no others are made."""
        limit, made, fits_at = self.limit, self._count(now), now
        for at, number in self._made:
            if limit is None or not made or made + needs <= limit:
                break
            if at + MINUTE > now:
                made, fits_at = made - number, at + MINUTE
        return fits_at

    def _count(self, now: int) -> int:
        """The evictions of the minute before."""
        return sum(number for at, number in self._made if at + MINUTE > now)

    def refusal(self, claim: Claim, needs: int, cause: Refusal, now: int) -> Braked | None:
        """Why the victims of a claim may not be evicted now, if they may not."""
        if not needs:
            return None
        if self.is_paused(now):
            return self._braked(Reason.EVICTIONS_PAUSED, self._pause_words(now), needs, cause)
        limits, made = self._limits(), self._count(now)
        if not limits or not ((made and made + needs > self._least(limits)) or self._behind(claim)):
            return None
        return self._braked(Reason.EVICTION_BRAKE, self._words(claim, needs, now), needs, cause)

    def _least(self, limits: dict[str, int]) -> int:
        return min(limits.values())

    def still_refused(self, claim: Claim, cause: Refusal, now: int) -> Braked | None:
        """The refusal of a claim that was braked before, and need not be searched for again.

        A search for each of many braked claims, whenever something happens, would take seconds. A
        gang is searched for while evictions are paused: it may find room that needs no victims.
        """
        if claim.uid not in self._refused:
            return None
        if self.is_paused(now):
            words = self._pause_words(now)
            return (
                None
                if claim.others or claim.size > 1
                else self._braked(Reason.EVICTIONS_PAUSED, words, 0, cause)
            )
        if self.limit is None or not self._behind(claim):
            return None
        return self._braked(Reason.EVICTION_BRAKE, self._words(claim, 0, now), 0, cause)

    def _behind(self, claim: Claim) -> bool:
        """Does a braked claim wait that comes before this one?"""
        waiting = self._state.waiting
        if self._first is None or self._first[0] not in waiting:
            return False
        first = waiting.claim(self._first[0])
        return first.uid != claim.uid and precedes(waiting.position(first), waiting.position(claim))

    def _braked(self, reason: Reason, words: str, needs: int, cause: Refusal) -> Braked:
        message = f"{words}; it waits for them because of {cause.reason}: {cause.message}"
        rest = (cause.quota, cause.resource, (*cause.watch, _BRAKE))
        return Braked(reason, message, *rest, needs, cause)

    def _words(self, claim: Claim, needs: int, now: int) -> str:
        """Which brake, the numbers, for which claim the rest is kept, when the next may go."""
        limits, made = self._limits(), self._count(now)
        limit = self._least(limits)
        which = next(words for words, most in limits.items() if most == limit)
        asks = f"it needs {needs}, and " if needs else ""
        words = f"evictions are braked: {asks}{made} of {limit} were made in the last minute"
        words += f" ({which})"
        if needs > limit:
            words += "; more than a minute allows go together, after a minute without evictions"
        if self._first is not None and self._behind(claim):
            first = self._state.waiting.claim(self._first[0])
            words += f"; what is left is kept for {first.pods[0].path}, which comes before it"
        due = self._first_due(now) if self._first else self._fits_at(needs, now)
        if due is not None and due > now:
            words += f"; the next may be made in {-(-(due - now) // SECOND)} s"
        return words

    def _pause_words(self, now: int) -> str:
        pause = self.pause
        assert pause is not None
        words = f"evictions are paused{pause.words and f' {pause.words}'}"
        if pause.until is not None:
            words += f"; they resume in {-(-(pause.until - now) // SECOND)} s"
        return words

    def note_refused(self, claim: Claim, refusal: Braked) -> None:
        """A claim was refused by the brake: what is left is kept for the first one in the order."""
        self._refused[claim.uid] = None
        if refusal.reason is Reason.EVICTION_BRAKE and refusal.needs and not self._behind(claim):
            self._first = claim.uid, refusal.needs

    def spend(self, evictions: int, now: int, claim: Claim | None = None) -> None:
        """Pods are evicted, for this claim if for any; those that waited behind it are tried."""
        if evictions:
            before = self._made.pop()[1] if self._made and self._made[-1][0] == now else 0
            self._made.append((now, before + evictions))
        if claim is not None:
            self._refused.pop(claim.uid, None)
            if self._first is not None and self._first[0] == claim.uid:
                self._first = None
                self._state.waiting.wake(self._state.waiting.parked(_BRAKE))

    def is_open(self, now: int) -> bool:
        """May pods be evicted for no claim: is something left, and no claim waits for it?"""
        limit = self.limit
        open_now = not self.is_paused(now) and (
            limit is None or (self._first is None and self._count(now) < limit)
        )
        self._rest_due = None if open_now else self._next_look(now)
        return open_now

    def take(self, evictions: Iterable[Evict], now: int) -> list[Evict]:
        """The first of these evictions, which are for no claim, that may be made now.

        Pods of one gang go together, as the victims of a claim do.
        """
        limit, taken = self.limit, list[Evict]()
        units: dict[str, list[Evict]] = {}
        for each in evictions:
            units.setdefault(each.pod.gang or each.pod.uid, []).append(each)
        for unit in units.values():
            made = self._count(now)
            if limit is not None and made and made + len(unit) > limit:
                self._rest_due = self._next_look(now)
                break
            self.spend(len(unit), now)
            taken += unit
        return taken

    def _next_look(self, now: int) -> int:
        """When evictions that were put off are tried again: when the oldest is a minute old."""
        return self._made[0][0] + MINUTE if self._made else now + MINUTE

    def deadline(self, now: int) -> int | None:
        """When a braked claim, or evictions for none, may go on; when a pause ends."""
        pause = self.pause
        if self.is_paused(now):
            return pause.until if pause is not None else None
        if self._first is not None and self._first[0] not in self._state.waiting:
            return now + 1  # those behind it are tried at once
        due = (self._first_due(now), self._rest_due)
        return min((each for each in due if each is not None), default=None)

    def summarise(self, now: int) -> BrakeSummary:
        """How the brake stands, for metrics and probes."""
        return BrakeSummary(self.is_paused(now), self.limit, self._count(now))
