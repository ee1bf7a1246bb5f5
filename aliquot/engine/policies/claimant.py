"""A claim that may preempt, and the facts that the rules of reclaim need."""

from collections.abc import Callable
from functools import cached_property

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.columns import Vector
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import ask_text
from aliquot.engine.policies.eligible import Mask, Right, Rights, evictable_pods
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.shields import Shields
from aliquot.engine.policies.usage import after_leaving, within_min
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Spare = Callable[[str, int], int]
"""What a quota can use of a resource without being reclaimed from at once."""


class Claimant:
    """A claim that may preempt, and the facts that the rules need."""

    def __init__(
        self,
        state: State,
        claim: Claim,
        node_class: str | None,
        rights: Rights,
        now: int,
        spare: Spare,
        shields: Shields,
    ) -> None:
        self.state = state
        self.claim = claim
        self.rights = rights
        self.charge: Vector = tuple(
            (row, amount)
            for row, amount in claim.charge(node_class)
            if state.tree.guaranteed(row) is not None
        )
        """What it is charged, in the resources that some quota's min names."""
        self.named = frozenset(
            row
            for row, _ in self.charge
            if claim.quota is not None and state.tree.names(state.tree.slots[claim.quota], row)
        )
        """Those that its own quota's min names: only in these is it guaranteed anything."""
        self._reachable = evictable_pods(state, now)
        own = state.gangs.allies(claim.pods)
        slots = state.bound_pods.slots
        self._reachable[[slots[uid] for uid in own if uid in slots]] = False
        self.evictable: Mask = self._reachable & shields.exposed()
        """The pods that may be evicted at all."""
        self._shields = shields
        self._spare = spare

    def evictable_in(self, short: Rows) -> Mask:
        """The pods that may be evicted for what is short.

        Of those that are not preemptible, the ones above their quota's bound in that.
        """
        mask: Mask = self._reachable & self._shields.exposed(short)
        return mask

    @property
    def quota(self) -> str:
        """The claim's quota; only for claims that have one."""
        assert self.claim.quota is not None
        return self.claim.quota

    @property
    def slot(self) -> int:
        """The slot of the claim's quota."""
        return self.state.tree.slots[self.quota]

    @cached_property
    def within_min(self) -> set[int]:
        """The resources in which its quota would stay within min."""
        return {row for row, n in self.charge if within_min(self.state, self.quota, row, n)}

    def guaranteed(self, short: Rows) -> Rows:
        """Of the resources that are short, those that its quota's min names."""
        return tuple(row for row in short if row in self.named)

    @property
    def borrows(self) -> bool:
        """Would its quota be above min in any resource that it is charged?"""
        return len(self.within_min) < len(self.charge)

    @cached_property
    def quotaless(self) -> Mask:
        """With `quotaless: lowest`, the pods without a quota: the first victims."""
        outside: Mask = self._reachable & (
            self.state.bound_pods.quota == self.state.tree.slots[OUTSIDE]
        )
        if self.state.knobs.eviction.quotaless != "lowest":
            outside[:] = False
        return outside

    @property
    def lower_priority(self) -> Mask:
        """The evictable pods of lower priority than the claim."""
        lower: Mask = self.evictable & (self.state.bound_pods.priority < self.claim.priority)
        return lower

    def explain(self, victim: Pod) -> str:
        """The message of a preemption by priority, or of a pod without a quota."""
        claimant = self.claim.pods[0]
        words = f"priority {victim.priority} against {claimant.priority}"
        if self.claim.quota is not None and self.state.tree.quota_of(victim) is None:
            words = f"pods without a quota go before those of quota {self.claim.quota} ({words})"
        return f"makes way for {claimant.path}: {words}"

    def ask_text(self, row: int) -> str:
        """What the claim asks for of a resource, for messages."""
        name = self.state.resources.names[row]
        return ask_text(self.claim.size, name, dict(self.charge).get(row, 0))

    def asks(self, name: str, amount: int) -> str:
        """What the claim asks for of a resource of this name, for messages."""
        return ask_text(self.claim.size, name, amount)

    def could_keep(self) -> bool:
        """Could the claim keep what it takes beyond its quota's min?

        It must still be there once all other quotas have what they request of their min; else the
        claim would be reclaimed from at once, and nothing is evicted for it.
        """
        return all(
            row in self.within_min
            or after_leaving(self.state, row, self.slot) + amount <= self._spare(self.quota, row)
            for row, amount in self.charge
        )

    def exchange_rights(self) -> Rights:
        """What must come free in the claim's own quota, so that it does not grow by a preemption.

        Unless the quota could keep what it grows by (see `could_keep`).
        """
        rights: Rights = {}
        for row, amount in self.charge:
            if row not in self.within_min:
                before = after_leaving(self.state, row, self.slot)
                kept = max(before, self._spare(self.quota, row))
                if before + amount > kept:
                    rights[Right(self.slot, row)] = before + amount - kept
        return rights
