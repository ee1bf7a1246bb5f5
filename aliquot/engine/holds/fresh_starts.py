"""Fresh starts: a start that was decided in this cycle can still be taken back without an eviction.

Claims are tried one by one, so a claim that borrows may have started before a claim of another
quota is tried that would take what it borrowed back at once: inside a quota a claim above min can
come before one within min. The Bind has not been handed out yet, so it is withdrawn: its pods wait
again, and are tried again in the same cycle. Each claim is withdrawn once a cycle at most, so that
a cycle ends.
"""

from collections.abc import Callable
from itertools import islice

from aliquot.engine.model.reasons import Refusal
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_MOST_TRIED = 64
"""How many of the last starts are considered for one claim: setting one aside takes some 10 us, so
this costs less than the victim search that it replaces."""

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
        self._withdrawn: set[str] = set()

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
            self._withdrawn.add(each.uid)
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
                        return aside
            return aside if len(aside) > tried and assume(claim) is None else []

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
            if each.uid not in self._withdrawn
            and (
                each.quota in taken_back
                if each.quota != claim.quota
                else each.priority < claim.priority
            )
        )
        return list(islice(candidates, _MOST_TRIED))
