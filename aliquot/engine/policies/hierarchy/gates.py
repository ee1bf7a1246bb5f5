"""The gates of quota trees: a claim starts within the runtime of its quota and every ancestor.

Non-preemptible pods start within their quota's min only. When nothing else can start, preemptible
pods may use idle capacity beyond runtime, as surplus.
"""

from aliquot.engine.model.knobs import HierarchyKnobs
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.shares import CurrentShares, ShareGates
from aliquot.engine.policies.shields import Shields
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class HierarchyGates(ShareGates[Shares]):
    """Used, plus nominations, plus the claim, within runtime, up to the root."""

    noun = "quota"
    share_word = "runtime"
    own_reason = Reason.RUNTIME_EXCEEDED
    ancestor_reason = Reason.ANCESTOR_EXCEEDED

    def __init__(self, state: State, shares: CurrentShares[Shares], knobs: HierarchyKnobs) -> None:
        super().__init__(state, shares)
        self._knobs = knobs
        self.shields = Shields(state, self._shield_rows, state.tree.min.get, "quota", "min")

    def may_use_idle(self, claim: Claim) -> bool:
        """With `surplus`, preemptible pods may."""
        return self._knobs.surplus and claim.preemptible

    def admission_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Refuses pods in a parent quota, and non-preemptible pods above the quota's min."""
        name, state = claim.quota, self._state
        quota = None if name is None else state.tree.quotas[name]
        if quota is None or quota.unshared:
            return None
        if quota.is_parent and self._knobs.parent_pods == "refuse":
            words = f"quota {name} is a parent: pods belong to the quotas below it"
            return Refusal(Reason.PARENT_QUOTA, words, name, watch=(Watch(quota=name),))
        return None if claim.preemptible else self.shields.refusal(claim, node_class)

    def _shield_rows(self, slot: int) -> Rows:
        """The resources in which a quota's pods that are not preemptible are held against its min.

        All that are shared; none for the system quota.
        """
        book = self._shares.book
        return tuple(sorted(book.rows_of(slot))) if slot in book.sharing else ()

    def is_within_runtime(self, claim: Claim, node_class: str | None) -> bool:
        """Would its quota's own pods stay within runtime and max with the claim?"""
        book, slot = self._shares.read(), self._state.tree.slots[str(claim.quota)]
        account, rows = book.account(slot), book.rows_of(slot)
        return all(
            book.after_leaving(row, account) + amount
            <= min(book.amounts.get(row, account), self._state.tree.max.get(row, slot))
            for row, amount in claim.charge(node_class)
            if row in rows
        )
