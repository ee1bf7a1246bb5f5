"""The gates of queues: a claim starts within what its queue and every queue above it deserve.

Idle capacity beyond that may be used by preemptible pods of reclaimable queues, and is given back
on demand.
"""

from dataclasses import replace

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.policies.eligible import Right
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.shares import CurrentShares, ShareGates
from aliquot.engine.policies.shields import Shields
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class QueueGates(ShareGates[Deserved]):
    """Used, plus nominations, plus the claim, within deserved, up to the root."""

    noun = "queue"
    share_word = "deserves"
    own_reason = ancestor_reason = Reason.QUEUE_OVER_DESERVED

    def __init__(self, state: State, shares: CurrentShares[Deserved]) -> None:
        super().__init__(state, shares)
        self.shields = Shields(
            state, self._shield_rows, shares.book.amounts.get, "queue", "deserves"
        )
        self._nominated_bounds: dict[str, dict[Right, int]] = {}
        """What the queues of a nominated claim may use with it, by the claim's uid."""

    def may_use_idle(self, claim: Claim) -> bool:
        """Preemptible pods of reclaimable queues may."""
        return claim.preemptible and self._state.tree.quotas[str(claim.quota)].reclaimable

    def admission_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Refuses pods that name a queue which does not exist, or one with queues below it.

        And pods that are not preemptible beyond what their queue deserves.
        """
        named, quotas = claim.pods[0].quota, self._state.tree.quotas
        if named is not None and named not in quotas:
            words = f"there is no queue {named}"
            return Refusal(Reason.QUEUE_MISSING, words, named, watch=(Watch(quota=ROOT),))
        if claim.quota is None or not quotas[claim.quota].is_parent:
            self._shares.read()
            return self.shields.refusal(claim, node_class)
        words = f"queue {claim.quota} is a parent: pods belong to the queues below it"
        watch = (Watch(quota=claim.quota),)
        return Refusal(Reason.PARENT_QUOTA, words, claim.quota, watch=watch)

    def _shield_rows(self, slot: int) -> Rows:
        """The resources in which a queue's pods that are not preemptible keep to its deserved."""
        tree, book = self._state.tree, self._shares.book
        outside = slot == tree.slots[OUTSIDE] or slot in book.unshared
        return () if outside else tuple(sorted(book.rows))

    def gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """A nominated claim may start on idle capacity."""
        if (
            claim.held
            and claim.uid not in self._state.reserved
            and not self.is_outside(claim)
            and self.admission_gate(claim, node_class) is None
            and self.fits_idle(claim, node_class)
        ):
            return None
        refusal = super().gate(claim, node_class)
        return None if refusal is None else self._with_cause(refusal)

    def _with_cause(self, refusal: Refusal) -> Refusal:
        """The refusal; where a queue deserves nothing by its own word, with that as its cause."""
        slots, resources = self._state.tree.slots, self._state.resources
        if refusal.reason is not self.own_reason or None in (refusal.quota, refusal.resource):
            return refusal
        row = resources.row(str(refusal.resource))
        if self._shares.book.names(row, slots[str(refusal.quota)]):
            return refusal
        cause = f"; its `deserved` does not name {refusal.resource}, other queues' does"
        return replace(refusal, message=refusal.message + cause)

    def _beyond_share(self, claim: Claim, node_class: str | None) -> Vector:
        """What is within deserved, of its queue and every queue above it, need not be idle."""
        book = self._shares.read()
        accounts = book.accounts(str(claim.quota))
        return tuple(
            (row, amount)
            for row, amount in super()._beyond_share(claim, node_class)
            if any(
                book.taken(row, account) + amount > book.amounts.get(row, account)
                for account in accounts
            )
        )

    def share_for(self, claim: Claim, row: int, account: int) -> int:
        """What a queue deserves; for a nominated claim, at least what it used at that time.

        A claim with a reservation was not nominated, or is not any more: no pod makes way for it.
        """
        deserves = super().share_for(claim, row, account)
        if not claim.held or claim.uid in self._state.reserved:
            return deserves
        return max(deserves, self._nominated_bounds.get(claim.uid, {}).get(Right(account, row), 0))

    def share_to_keep(self, row: int, account: int) -> int:
        """A queue above deserved may stay there, but must not grow: a claim replaces other pods."""
        deserves = super().share_to_keep(row, account)
        return max(deserves, self._state.ledger.used.get(row, account))

    def _owes(self, claim: Claim, besides: Vector) -> bool:
        """Is the claim within what its queue deserves, in the resources that are not idle?

        So a queue whose `deserved` names GPUs is owed them, with idle cpus beside them.
        """
        within = super()._owes(claim, besides)
        if within or claim.quota is None or self.is_outside(claim):
            return within
        before = dict(besides)
        deserved, lineage = self._shares.read(), self._state.tree.lineage(claim.quota)
        asks = {row: n for row, n in claim.charge(None) if row in deserved.rows}
        above = {
            row
            for row, amount in asks.items()
            if self._state.ledger.used.get(row, lineage[0]) + before.get(row, 0) + amount
            > deserved.get(row, lineage[0])
        }
        return above < asks.keys() and all(
            deserved.is_idle(row, before.get(row, 0) + asks[row], lineage) for row in above
        )

    def could_keep_idle(self, claim: Claim) -> bool:
        """Not if its queue deserves nothing at all of something that it asks for."""
        deserved, slots = self._shares.read(), self._state.tree.slots
        return all(
            deserved.get(row, slots[part.quota])
            for part in claim.parts or (claim,)
            if part.quota is not None
            for row, _ in part.charge(None)
            if row in deserved.rows
        )

    def nominated(self, claim: Claim) -> None:
        """Note what its queues use now: its gate grants as much once the victims are gone."""
        state, deserved = self._state, self._shares.read()
        self._nominated_bounds = {
            uid: most for uid, most in self._nominated_bounds.items() if uid in state.waiting
        }
        if not self.is_outside(claim):
            self._nominated_bounds[claim.uid] = {
                Right(slot, row): state.ledger.used.get(row, slot)
                for slot in state.tree.lineage(str(claim.quota))
                for row in deserved.rows
            }
