"""Fresh starts: a start that was decided in this cycle can still be taken back without an eviction.

Claims are tried one by one, so a claim that borrows may have started before a claim of another
quota is tried that would take what it borrowed back at once: inside a quota a claim above min can
come before one within min. The Bind has not been handed out yet, so it is withdrawn: its pods wait
again, and are tried again in the same cycle. Each claim is withdrawn once a cycle at most, so that
a cycle ends.
"""

from collections.abc import Callable

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
        self._withdrawn: set[str] = set()

    def begin(self) -> None:
        """Begin a cycle: what has started before is handed out."""
        self._started.clear()
        self._withdrawn.clear()

    def note(self, claim: Claim) -> None:
        """A claim has started."""
        if claim.quota is not None:
            self._started[claim.uid] = claim

    def withdraw_for(self, claim: Claim, assume: Assume) -> set[str]:
        """Withdraw starts that the claim would take back at once, if it can start then.

        The last starts first. Returns the uids of the pods that wait again.
        """
        if self._turns is None or claim.quota is None or claim.parts or not self._started:
            return set()
        found = self._starts_in_the_way(claim, assume)
        for each in found:
            del self._started[each.uid]
            self._withdrawn.add(each.uid)
            self._turns.withdrawn(each)
        uids = [uid for each in found for uid in each.uids()]
        for uid in uids:
            self._state.withdraw(uid)
        return set(uids)

    def _starts_in_the_way(self, claim: Claim, assume: Assume) -> list[Claim]:
        """The last starts without which the claim could start; none if that is not enough."""
        turns, aside, tried = self._turns, list[Claim](), 0
        assert turns is not None
        with self._state.speculating(claim) as speculation:
            for started in list(reversed(self._started.values()))[:_MOST_TRIED]:
                if started.uid in self._withdrawn or not turns.takes_back(claim, started):
                    continue
                speculation.set_aside(started.uids())
                aside.append(started)
                if len(aside) >= 2 * tried:  # as one claim may need many, not after each
                    tried = len(aside)
                    if assume(claim) is None:
                        return aside
            return aside if len(aside) > tried and assume(claim) is None else []
