"""A lane: claims of one kind, the most important first.

They differ only in age and name (see `Claim.kind`), so if the head is refused, so are all behind
it.
"""

from bisect import insort

from aliquot.engine.model.reasons import Refusal
from aliquot.engine.queue.claim import Claim


class Lane:
    """Claims of one kind, in order of importance, and why they are parked if they are."""

    def __init__(self, kind: tuple[object, ...]) -> None:
        self.kind = kind
        self.claims: dict[str, Claim] = {}
        self.refusal: Refusal | None = None
        self.due: Claim | None = None
        """The head with which the lane is in the queue of this cycle, if it is."""
        self.told: tuple[Refusal, Refusal] | None = None
        """The last refusal that was reported, and the same with everything else that refuses it."""
        self.rules_seen: object = None
        """What its rules depend on, when it was last looked at."""
        self._reported: tuple[object, ...] = ()
        self._unreported: list[Claim] = []
        self._queue: list[Claim] = []
        self._gone = 0

    def add(self, claim: Claim) -> None:
        """Add a claim."""
        self.claims[claim.uid] = claim
        claim.lane = self
        self._unreported.append(claim)
        queue = self._queue
        if not queue or queue[-1].key < claim.key:
            queue.append(claim)
        else:
            insort(queue, claim, lo=self._gone, key=lambda each: each.key)

    def drop(self, claim: Claim) -> None:
        """Remove a claim; it is skipped from now on."""
        del self.claims[claim.uid]
        claim.lane = None

    def unreported(self, refusal: Refusal) -> list[Claim]:
        """The claims to issue a Wait for: those new to the lane, or all if the reason is new."""
        key = (refusal.reason, refusal.quota, refusal.resource)
        found = self._unreported if key == self._reported else list(self.claims.values())
        self._reported, self._unreported = key, []
        return [claim for claim in found if self.claims.get(claim.uid) is claim]

    @property
    def has_unreported(self) -> bool:
        """May a claim have joined the lane for which no Wait was issued yet?"""
        return bool(self._unreported)

    @property
    def head(self) -> Claim | None:
        """The most important claim; claims that have left are skipped."""
        queue, end = self._queue, len(self._queue)
        while self._gone < end:
            claim = queue[self._gone]
            if claim.lane is self:
                return claim
            self._gone += 1
        queue.clear()
        self._gone = 0
        return None
