"""Fresh starts: a start that was decided in this cycle can still be taken back without an eviction.

Claims are tried one by one, so a claim that borrows may have started before a claim of another
quota is tried that would take what it borrowed back at once: inside a quota a claim above min can
come before one within min. The Bind has not been handed out yet, so it is withdrawn: its pods wait
again, and are tried again in the same cycle, later each time. Each claim is withdrawn a few times a
cycle at most, so that a cycle ends. Starts that are not in the way are put back.
"""

from collections import Counter
from collections.abc import Callable
from itertools import islice

from aliquot.engine.model.reasons import Refusal
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_MOST_TRIED = 64
"""How many of the last starts are considered for one claim: setting one aside takes some 10 us, so
this costs less than the victim search that it replaces."""
_MOST_WITHDRAWN = 2
"""How often a start is withdrawn in a cycle at most: each time it comes later, so that two claims
do not take turns for ever. Of 1,500 random starts, more than twice helped in none."""
_MOST_PUT_BACK = 16
"""Of so many starts each is tried to be put back. Their number squared times 10 us is the cost."""

Assume = Callable[[Claim], Refusal | None]
"""Assumes a claim, or says why not."""


class FreshStarts:
    """The claims that have started in this cycle, and those whose start was withdrawn."""

    def __init__(self, state: State, policy: Policy) -> None:
        self._state = state
        self._turns = policy.turns
        self._started: dict[str, Claim] = {}
        """By uid, in the order of their starts."""
        self._by_quota: dict[str, dict[str, Claim]] = {}
        """The same by quota, of quotas in which a claim has started."""
        self._withdrawn: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin a cycle: what has started before is handed out."""
        self._started.clear()
        self._by_quota.clear()
        self._withdrawn.clear()

    def note(self, claim: Claim) -> None:
        """A claim has started."""
        if claim.quota is not None:
            self._started[claim.uid] = claim
            self._by_quota.setdefault(claim.quota, {})[claim.uid] = claim

    def withdraw_for(self, claim: Claim, assume: Assume) -> set[str]:
        """Withdraw starts that the claim would take back at once, if it can start then.

        The last starts first. Returns the uids of the pods that wait again.
        """
        if self._turns is None or claim.quota is None or claim.parts or not self._started:
            return set()
        found = self._starts_in_the_way(claim, assume)
        for each in found:
            self._forget(each)
            self._withdrawn[each.uid] += 1
            self._turns.withdrawn(each)
        uids = [uid for each in found for uid in each.uids()]
        for uid in uids:
            self._state.withdraw(uid)
        return set(uids)

    def _forget(self, claim: Claim) -> None:
        del self._started[claim.uid]
        quota = str(claim.quota)
        del self._by_quota[quota][claim.uid]
        if not self._by_quota[quota]:
            del self._by_quota[quota]

    def _starts_in_the_way(self, claim: Claim, assume: Assume) -> list[Claim]:
        """The last starts without which the claim could start; none if that is not enough."""
        aside, tried = list[Claim](), 0
        candidates = self._candidates(claim)
        if not candidates:
            return []
        with self._state.speculating(claim) as speculation:
            for started in candidates:
                speculation.set_aside(started.uids())
                aside.append(started)
                if len(aside) >= 2 * tried:  # as one claim may need many, not after each
                    tried = len(aside)
                    if assume(claim) is None:
                        break
            else:
                if len(aside) == tried or assume(claim) is not None:
                    return []
        needed = self._needed(claim, aside, assume)
        return needed if self._may_replace(claim, needed) else []

    def _may_replace(self, claim: Claim, starts: list[Claim]) -> bool:
        """May the claim take the place of those of these starts that are of its own quota?"""
        assert self._turns is not None
        own = [each for each in starts if each.quota == claim.quota]
        freed: Counter[int] = Counter()
        for uid in (uid for each in own for uid in each.uids()):
            freed.update(dict(self._state.ledger.entries[uid].booking.charge))
        return not own or self._turns.may_replace(claim, freed)

    def _needed(self, claim: Claim, aside: list[Claim], assume: Assume) -> list[Claim]:
        """Those of these starts that are in the way; the others are put back, the first first."""
        needed = aside
        for each in reversed(aside) if 1 < len(aside) <= _MOST_PUT_BACK else ():
            rest = [other for other in needed if other is not each]
            with self._state.speculating(claim) as speculation:
                for other in rest:
                    speculation.set_aside(other.uids())
                if rest and assume(claim) is None:
                    needed = rest
        return needed

    def _candidates(self, claim: Claim) -> list[Claim]:
        """The starts that the claim would take back, the last first.

        Those of quotas from which it reclaims, and those of lower priority in its own quota.
        """
        assert self._turns is not None
        quotas = self._by_quota.keys() - {str(claim.quota)}
        taken_back = self._turns.takes_back_from(claim, sorted(quotas)) if quotas else set()
        own = self._by_quota.get(str(claim.quota), {}).values()
        if not taken_back and not any(each.priority < claim.priority for each in own):
            return []
        candidates = (
            each
            for each in reversed(self._started.values())
            if self._withdrawn[each.uid] < _MOST_WITHDRAWN
            and (
                each.quota in taken_back
                if each.quota != claim.quota
                else each.priority < claim.priority
            )
        )
        return list(islice(candidates, _MOST_TRIED))
