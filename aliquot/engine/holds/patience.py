"""Patience: how long victims may go on running before they are evicted for a claim.

Under churn, pods end all the time: of the claims that need victims now, many could start on what
comes free a moment later. With `eviction.patience`, room and right are held for a claim as soon as
victims are found for it, and what ends meanwhile is kept for it; pods that would be its next
victims do not start there. Once that time is over, the claim is tried as any other: it starts, or
the victims that it still needs are evicted at once. A claim has patience once, from when victims
were found for it first. Until then they are booked as leaving, so that no two claims count on one;
afterwards, or if the claim has started or is gone, they are running pods again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.model.pod import Pod
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_MILLI = SECOND // 1000


@dataclass(slots=True)
class _Deferred:
    """The victims of a claim that are yet to be evicted, and until when they are left alone."""

    due: int
    victims: dict[str, tuple[Evict, Pod]]
    """By uid, each with the pod as it was booked when it was chosen."""


class Patience:
    """The evictions that are deferred, by the uid of their claim."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state = state
        self._nominations = nominations
        self._patience = state.knobs.eviction.patience
        self._since: dict[str, int] = {}
        """When victims were found first, by the uid of each claim; also of some that are gone."""
        self._deferred: dict[str, _Deferred] = {}

    def due(self, claim: Claim, now: int) -> int:
        """When the victims of a claim may be evicted for which some are found now."""
        if not self._patience:
            return now
        if len(self._since) > 2 * len(self._state.waiting) + 1_000:  # a step a claim, in all
            self._since = {uid: at for uid, at in self._since.items() if uid in self._state.waiting}
        return max(self._since.setdefault(claim.uid, now) + self._patience, now)

    def defer(self, claim: Claim, victims: tuple[Evict, ...], due: int) -> None:
        """Leave these victims of a claim alone until they are due: they are booked as evicted."""
        booked = {each.pod.uid: (each, self._state.pods[each.pod.uid]) for each in victims}
        before = self._deferred.get(claim.uid)
        known = before.victims if before is not None else {}
        self._deferred[claim.uid] = _Deferred(due, known | booked)

    def note_evicted(self, uid: str) -> None:
        """A pod was evicted for another reason than its claim: it is not let run again."""
        for deferred in self._deferred.values():
            deferred.victims.pop(uid, None)

    def words(self, claim: Claim) -> str:
        """What a claim is told whose victims are left alone for now; empty if none are."""
        deferred = self._deferred.get(claim.uid)
        chosen = deferred.victims.values() if deferred is not None else ()
        paths = sorted(evict.pod.path for evict, booked in chosen if self._counts(evict, booked))
        if not paths:
            return ""
        those = f"{paths[0]} and {len(paths) - 1} more are" if len(paths) > 1 else f"{paths[0]} is"
        exact = self._patience % SECOND == 0
        length = self._patience // (SECOND if exact else _MILLI)
        after = f"{length}{'s' if exact else 'ms'} (eviction.patience) after they were found"
        return f"{those} evicted {after}, if that is needed then"

    @contextmanager
    def without_deferred(self, claim: Claim, now: int) -> Iterator[bool]:
        """Do not count on pods that are left alone, for a claim whose patience is over.

        Or it would wait for the patience of others, again and again. Are there any?
        """
        state, since = self._state, self._since.get(claim.uid)
        over = since is not None and since + self._patience <= now
        found = (each for one in self._deferred.values() for each in one.victims.values())
        alone = (
            [each.pod.uid for each, booked in found if self._counts(each, booked)] if over else []
        )
        for uid in alone:
            state.leaving.remove(uid)
        try:
            yield bool(alone)
        finally:
            for uid in alone:
                state.leaving.add(uid, state.ledger.entries[uid])

    def release(self, now: int, paused: bool) -> bool:
        """Let victims run on whose time is over, or whose claim has started or is gone.

        All of them, where evictions are `paused`. Claims that held what they would have freed are
        tried again in this cycle. Were there any?
        """
        state, released = self._state, False
        for uid, deferred in list(self._deferred.items()):
            claim = self._claim(uid)
            if not (paused or deferred.due <= now or claim is None):
                continue
            del self._deferred[uid]
            released = True
            for evict, booked in deferred.victims.values():
                if self._counts(evict, booked):
                    self._let_run(evict, booked)
            for each in claim.uids() if claim is not None else ():
                state.drop_nomination(each)
        if released:
            self._nominations.drop_insufficient()
        return released

    def deadline(self) -> int | None:
        """When victims are evicted next that are still there then."""
        return min((each.due for each in self._deferred.values()), default=None)

    def _claim(self, uid: str) -> Claim | None:
        """The claim, if it still waits.

        It may have lost what it held to a claim that comes before it and now counts on its victims:
        were they let run at once, both would choose them again in every cycle.
        """
        waiting = self._state.waiting
        return waiting.claim(uid) if uid in waiting else None

    def _counts(self, evict: Evict, booked: Pod) -> bool:
        """Does the pod run on, and count as leaving only because it was chosen?"""
        uid, pods = evict.pod.uid, self._state.pods
        if uid not in pods or uid not in self._state.leaving:
            return False
        return pods[uid] is booked or evict.pod.terminating or not pods[uid].terminating

    def _let_run(self, evict: Evict, booked: Pod) -> None:
        """Count a pod that was to be evicted as a running one again."""
        state, uid = self._state, evict.pod.uid
        self._nominations.forget_victim(uid)
        state.budgets.refund(evict.pod)
        pod = state.pods[uid]
        state.eviction_failed(uid)
        state.set_pod(evict.pod if pod is booked else pod)
