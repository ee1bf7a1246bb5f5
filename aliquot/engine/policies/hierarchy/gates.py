"""The gates of quota trees: a claim starts within the runtime of its quota and every ancestor.

Non-preemptible pods start within their quota's min only. When nothing else can start, preemptible
pods may use idle capacity beyond runtime, as surplus.
"""

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.knobs import HierarchyKnobs
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.shares import CurrentShares, ShareGates
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

    def may_use_idle(self, claim: Claim) -> bool:
        """With `surplus`, preemptible pods may."""
        return self._knobs.surplus and claim.preemptible

    def admission_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Refuses pods in a parent quota, and non-preemptible pods above the quota's min."""
        name, state = claim.quota, self._state
        if name is None or state.tree.quotas[name].unshared:
            return None
        if state.tree.quotas[name].is_parent and self._knobs.parent_pods == "refuse":
            words = f"quota {name} is a parent: pods belong to the quotas below it"
            return Refusal(Reason.PARENT_QUOTA, words, name, watch=(Watch(quota=name),))
        if claim.preemptible:
            return None
        slot, rows = state.tree.slots[name], self._shares.read().rows
        used = self._used_by_non_preemptible(name)
        for row, amount in claim.charge(node_class):
            low = state.tree.min.get(row, slot)
            if row in rows and used.get(row, 0) + amount > low:
                resource = state.resources.names[row]
                return Refusal(
                    Reason.NON_PREEMPTIBLE_ABOVE_MIN,
                    f"quota {name}: min {text(resource, low)} {resource}, used by pods that are "
                    f"not preemptible {text(resource, used.get(row, 0))}, "
                    f"{ask_text(claim.size, resource, amount)}",
                    name,
                    resource,
                    (Watch(quota=name),),
                )
        return None

    def is_within_runtime(self, claim: Claim, node_class: str | None) -> bool:
        """Would its quota's own pods stay within runtime and max with the claim?"""
        book, slot = self._shares.read(), self._state.tree.slots[str(claim.quota)]
        account = book.account(slot)
        return all(
            book.after_leaving(row, account) + amount
            <= min(book.amounts.get(row, account), self._state.tree.max.get(row, slot))
            for row, amount in claim.charge(node_class)
            if row in book.rows
        )

    def _used_by_non_preemptible(self, quota: str) -> dict[int, int]:
        """What the quota's non-preemptible pods use or are nominated for."""
        state, used = self._state, dict[int, int]()
        for uid in state.ledger.by_quota.get(quota, ()):
            entry = state.ledger.entries[uid]
            pod = state.pods.get(uid)  # None: what a gang asks for before its pods exist
            if pod is not None and entry.stage >= Stage.HELD and not pod.preemptible:
                for row, amount in entry.booking.charge:
                    used[row] = used.get(row, 0) + amount
        return used
