"""Pods that are not preemptible live within a bound, and are no shield beyond it.

The bound is the min of their quota; under `queues` what their queue deserves. Such a pod starts
only while all of its kind in the quota stay within the bound. What is above it nevertheless, since
the bound was lowered or the pod was bound past the scheduler, may be evicted where no set of
preemptible pods will do: a word on a pod must not keep the min of another team away.

A quota's pods that are not preemptible come first in its order of importance, and the core of a
gang counts as a whole, so the pods within the bound are the in-quota ones of `over_quota`.
"""

from collections.abc import Callable, Iterator

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import distinct
from aliquot.engine.model.explanation import GateFigure
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text
from aliquot.engine.policies.eligible import Mask
from aliquot.engine.policies.over_quota import Rows, split_at
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

RowsOf = Callable[[int], Rows]
"""The resources in which a quota's pods are compared with the bound, by the quota's slot."""
BoundOf = Callable[[int, int], int]
"""The bound of a resource (row) in a quota (slot)."""

LASTING = "for pods that are not preemptible"
"""The word for their bound among the figures of gates."""
_HELP = "; beyond that only preemptible pods start"


class Shields:
    """The bound of a policy for pods that are not preemptible."""

    def __init__(self, state: State, rows: RowsOf, bound: BoundOf, noun: str, word: str) -> None:
        self._state = state
        self._rows = rows
        self._noun = noun
        self._word = word
        self.bound = bound

    def refusal(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Why a claim that is not preemptible may not start: it would be above the bound."""
        if claim.preemptible or claim.quota is None:
            return None
        state, quota = self._state, claim.quota
        slot, used = state.tree.slots[quota], state.lasting.of(quota)
        rows = self._rows(slot)
        for row, amount in claim.charge(node_class):
            most = self.bound(row, slot) if row in rows else None
            if most is not None and used.get(row, 0) + amount > most:
                name = state.resources.names[row]
                words = (
                    f"{self._noun} {quota}: {self._word} {text(name, most)} {name}, used by pods "
                    f"that are not preemptible {text(name, used.get(row, 0))}, "
                    f"{ask_text(claim.size, name, amount)}{_HELP}"
                )
                watch = (Watch(quota=quota),)
                reason = Reason.NON_PREEMPTIBLE_ABOVE_MIN
                return Refusal(reason, words, quota, name, watch)
        return self._model_refusal(claim, node_class) if state.model_mins else None

    def _model_refusal(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Why such a claim may not take cards of a model: mins of it could not be met any more.

        As it is no victim of the quotas that are guaranteed them.
        """
        state = self._state
        for row, amount in claim.charge(node_class):
            kept = state.model_mins.of(row)
            if not kept:
                continue
            needed, has = self._needed(row, claim, amount), state.capacity.guaranteed(row)
            if needed > has and state.lasting.of(str(claim.quota)).get(
                row, 0
            ) + amount > state.model_mins.get(row, state.tree.slots[str(claim.quota)]):
                name = state.resources.names[row]
                words = (
                    f"{self._noun} {claim.quota}: with it, pods that are not preemptible and the "
                    f"mins of other quotas need {text(name, needed)} {name} of {text(name, has)}, "
                    f"{ask_text(claim.size, name, amount)}{_HELP}"
                )
                reason, watch = Reason.NON_PREEMPTIBLE_ABOVE_MIN, Watch(quota=ROOT)
                return Refusal(reason, words, claim.quota, name, (watch,))
        return None

    def figures(self, claim: Claim, node_class: str | None) -> Iterator[GateFigure]:
        """What `refusal` compares, in each resource that counts for the quota."""
        if claim.preemptible or claim.quota is None:
            return
        state, slot = self._state, self._state.tree.slots[claim.quota]
        used, rows = state.lasting.of(claim.quota), self._rows(slot)
        for row, amount in claim.charge(node_class):
            if row in rows:
                name, most = state.resources.names[row], self.bound(row, slot)
                yield GateFigure(claim.quota, name, LASTING, most, used.get(row, 0), amount)

    def _needed(self, row: int, claim: Claim, amount: int) -> int:
        """The cards of a model that are kept or guaranteed, once this claim has started."""
        state, most = self._state, dict(self._state.model_mins.of(row))
        for name in state.tree.quotas:
            slots = state.tree.lineage(name)
            lasting = state.lasting.of(name).get(row, 0) + (amount if name == claim.quota else 0)
            least = most.get(slots[0], 0)
            if lasting > least:
                most[slots[0]] = lasting
        return sum(most.values())

    def exposed(self, short: Rows | None = None) -> Mask:
        """The bound pods that are preemptible, or above the bound; over the bound pods.

        Above it in what is `short`; without that, in all resources that count for their quota.
        """
        pods = self._state.bound_pods
        mask: Mask = pods.preemptible
        lasting = (pods.node >= 0) & ~mask
        for slot in distinct(pods.quota[lasting]).tolist():
            rows = self._rows(slot)
            if short is not None and rows:
                rows = short
            if rows:
                low = tuple(self.bound(row, slot) for row in rows)
                mask[split_at(self._state, slot, rows, low).over] = True
        return mask
