"""KEP-9 capacity scheduling: min is guaranteed, what is idle of it may be borrowed up to max.

A claim may start if all quotas together stay within the sum of their guarantees: whoever goes
above min does so on min that somebody else leaves idle. The knob `borrow: freeCapacity` lends what
the cluster has beyond the guarantees, too.
"""

from collections.abc import Iterator

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.offer import Offer, Right, Rights
from aliquot.engine.policies import giving
from aliquot.engine.quantity import LIMIT, text
from aliquot.engine.reasons import Reason, Refusal, Watch, asked, kept
from aliquot.engine.state import State
from aliquot.engine.tree import OUTSIDE, ROOT


class Capacity:
    """The policy of flat quotas with min and max."""

    def __init__(self, knobs: Knobs) -> None:
        self._lend_free = knobs.capacity.borrow == "freeCapacity"

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used by all quotas, plus what is held, plus the claim, within the sum of min.

        Only resources that the claim asks for count, and of those only the ones that some quota's
        min names.
        """
        if claim.quota is None:
            return None
        ledger, root = state.ledger, state.tree.slots[ROOT]
        for row, amount in claim.charge(node_class):
            most = self._lendable(state, row)
            if most is None or most >= LIMIT:
                continue
            used = ledger.used.get(row, root)
            held = ledger.held.get(row, root) if ledger.holding else 0
            if used + held + amount > most:
                resource = state.resources.names[row]
                return Refusal(
                    Reason.BORROWING_EXHAUSTED,
                    f"all quotas together: {self._bound_name} {text(resource, most)} {resource}, "
                    f"used {text(resource, used)}{kept(resource, held)}, "
                    f"{asked(claim.size, resource, amount)}; it waits until enough is given back",
                    quota=claim.quota,
                    resource=resource,
                    watch=(Watch(quota=ROOT), Watch(quota=OUTSIDE)),
                )
        return None

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the quotas before the claim may start, leaving pods aside."""
        rights: Rights = {}
        if claim.quota is None:
            return rights
        leaving, ledger = state.leaving_charge, state.ledger
        root = state.tree.slots[ROOT]
        for row, amount in claim.charge(node_class):
            bounds = [(root, self._lendable(state, row))]
            path = state.tree.path(claim.quota)[:-1]
            bounds.extend((slot, state.tree.max.get(row, slot)) for slot in path)
            for slot, most in bounds:
                if most is None or most >= LIMIT:
                    continue
                soon = ledger.used.get(row, slot) - leaving.get(row, slot)
                short = soon + ledger.held.get(row, slot) + amount - most
                if short > 0:
                    rights[Right(slot, row)] = short
        return rights

    def offers(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Offer]]:
        """Who gives back: see `policies.giving`."""
        return giving.offers(state, claim, node_class, rights, now)

    @property
    def _bound_name(self) -> str:
        return "guaranteed or free" if self._lend_free else "sum of min"

    def _lendable(self, state: State, row: int) -> int | None:
        """What all quotas together may use of this resource; None if none guarantees any of it."""
        guaranteed = state.tree.guaranteed(row)
        if guaranteed is None or not self._lend_free:
            return guaranteed
        outside = state.ledger.used.get(row, state.tree.slots[OUTSIDE])
        return max(guaranteed, state.nodes.total.get(state.resources.names[row], 0) - outside)
