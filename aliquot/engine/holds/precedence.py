"""Which holds count against a claim: nominations and reservations of other claims.

A nomination of an owed claim counts against all but a more important owed claim of its quota. One
of any other claim counts against all but owed claims, which take the room and right held for it
before a running pod is asked to go. Among claims without a quota, importance alone decides. What is
held for a critical claim of the system yields to such claims only: its victims, which any quota may
lose within its min, must free room for no other.

A reservation does not count against claims before it in the policy's order; nor, if its claim is
not owed, against owed claims of other quotas; nor against a claim that is known to end before the
reserved one is known to start (backfill).
"""

from collections.abc import Iterator

from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.reservation import Reservation, Reservations
from aliquot.engine.policies import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import precedes
from aliquot.engine.state import State


class Precedence:
    """Compares claims with the claims for which room and right are held."""

    def __init__(
        self, state: State, policy: Policy, nominations: Nominations, reservations: Reservations
    ) -> None:
        self._state = state
        self._policy = policy
        self._nominations = nominations
        self._reservations = reservations

    def yielding(self, claim: Claim, now: int) -> list[str]:
        """The pods whose hold does not count against the claim, its own aside."""
        if not self._state.ledger.holding:
            return []
        owed = claim.quota is not None and self._is_owed(claim)
        return [*self._nominated(claim, owed), *self._reserved(claim, owed, now)]

    def _is_owed(self, claim: Claim) -> bool:
        """Is it owed beside what is held for more important owed claims of its quota?

        Else two claims of which only one is owed would each take what the other's rivals hold, and
        be displaced in turn, in every cycle.
        """
        if not self._policy.gates.is_owed(claim):
            return False
        held, reserved = self._state.ledger.holding_in.get(claim.quota, ()), self._state.reserved
        own, key_of = set(claim.uids()), self._nominations.key_of
        before = [uid for uid in held if uid not in reserved and uid not in own]
        before = [uid for uid in before if key_of(uid) < claim.key]
        if not before or claim.parts:
            return True
        _, charged = self._owed(before)
        return self._policy.gates.is_owed(claim, tuple(charged.items()))

    def _nominated(self, claim: Claim, owed: bool) -> Iterator[str]:
        """The nominated pods that yield to the claim."""
        holding_in, reserved = self._state.ledger.holding_in, self._state.reserved
        for quota, held in holding_in.items() if owed or claim.quota is None else ():
            own = quota == claim.quota
            if not held or (claim.quota is None and not own):
                continue
            owes_all = quota is None or self._policy.gates.owes_all_held(quota)
            if owes_all and not (own and self._nominations.may_be_later(quota, claim.key)):
                continue
            nominated = [uid for uid in held if uid not in reserved]
            if not claim.is_critical(self._state.knobs.system_namespaces):
                nominated = [uid for uid in nominated if not self._is_critical(uid)]
            strong = set[str]() if owes_all else self._owed(nominated)[0]
            for uid in nominated:
                more_important = own and claim.key < self._nominations.key_of(uid)
                if more_important or not (owes_all or uid in strong):
                    yield uid

    def _is_critical(self, uid: str) -> bool:
        """Is the pod, or the gang that waits with it, critical for the system?"""
        waiting, system = self._state.waiting, self._state.knobs.system_namespaces
        return uid in waiting and waiting.claim(uid).is_critical(system)

    def _owed(self, nominated: list[str]) -> tuple[set[str], dict[int, int]]:
        """Of a quota's nominated pods, those of owed claims, and what these charge together.

        The more important claims are counted first.
        """
        waiting, owed = self._state.waiting, set[str]()
        claims = {waiting.claim(uid).uid: waiting.claim(uid) for uid in nominated if uid in waiting}
        sums: dict[int, int] = {}
        for claim in sorted(claims.values(), key=lambda each: each.key):
            if self._policy.gates.is_owed(claim, tuple(sums.items())):
                owed.update(claim.uids())
                for row, amount in claim.charge(None):
                    sums[row] = sums.get(row, 0) + amount
        return owed, sums

    def _reserved(self, claim: Claim, owed: bool, now: int) -> Iterator[str]:
        """The pods with a reservation that yields to the claim."""
        waiting, current = self._state.waiting, list(self._reservations.current())
        position = waiting.position(claim) if current else None
        for other, each in current:
            if claim.uid == other.uid or position is None:
                continue
            first = precedes(position, waiting.position(other))
            if (
                first
                or self._is_stronger(claim, owed, other)
                or self._ends_before(claim, each, now)
            ):
                yield from other.uids()

    def _is_stronger(self, claim: Claim, owed: bool, other: Claim) -> bool:
        """Is the claim owed, and the reserved one of another quota not?"""
        if not owed or claim.quota == other.quota:
            return False
        return not self._policy.gates.is_owed(other)

    def _ends_before(self, claim: Claim, other: Reservation, now: int) -> bool:
        """Is the claim known to end before the reserved one is known to start?"""
        durations = [pod.expected_duration for pod in claim.pods]
        if any(each is None for each in durations):
            return False
        start = self._reservations.known_start(other)
        return start is not None and all(now + int(each or 0) <= start for each in durations)
