"""A claim of a queue, as the rules of reclaim and preemption between and in queues see it.

A claim that requests nothing has only victims that request nothing.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Mask
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.return_order import ReturnOrder


class QueueClaimant:
    """A claim of a queue, what it is charged, and which pods may be its victims."""

    def __init__(
        self,
        claimant: Claimant,
        node_class: str | None,
        deserved: Deserved,
        drf: DominantShares,
        order: ReturnOrder,
    ) -> None:
        self.general = claimant
        self.state = claimant.state
        self.claim = claimant.claim
        self.queue = claimant.quota
        self.slot = claimant.slot
        self.deserved = deserved
        self.drf = drf
        self.order = order
        self.lineage = claimant.state.tree.lineage(claimant.quota)
        """The claim's queue, and those above it."""
        self.charge = tuple(
            (row, amount)
            for row, amount in claimant.claim.charge(node_class)
            if row in deserved.rows
        )
        self.above = deserved.above(self.slot, self.charge)
        """The resources in which its queue would be above deserved."""
        self._spared = self._requesting_nothing()
        self.evictable = claimant.evictable & ~self._spared

    def evictable_in(self, short: Rows) -> Mask:
        """The pods that may be evicted for what is short."""
        mask: Mask = self.general.evictable_in(short) & ~self._spared
        return mask

    @property
    def asked_for(self) -> set[int]:
        """The resources that it asks for; `pods` counts only where it asks for nothing else."""
        rows = {row for row, _ in self.charge}
        return rows - {row for row in rows if self.state.resources.names[row] == "pods"} or rows

    @property
    def namespace(self) -> str:
        """The claim's namespace."""
        return self.claim.pods[0].namespace

    @cached_property
    def nodes_by_shortage(self) -> dict[Rows, Mask]:
        """The nodes, by the resources that are short there or in the queues above its own.

        What it takes above deserved in its own queue is not short if it is idle.
        """
        lacking = {
            right.row
            for right in self.general.rights
            if right.slot != self.slot or right.row not in self.above
        }
        return reclaim_rules.by_shortage(self.state, self.claim, self.charge, lacking)

    def contested(self, short: Rows) -> set[int]:
        """What it takes above deserved, and is short where these are, or is not idle."""
        amounts = dict(self.charge)
        return {
            row
            for row in self.above
            if row in short or not self.deserved.is_idle(row, amounts[row], self.lineage)
        }

    def of(self, uids: Iterable[str]) -> Mask:
        """A mask over the bound pods of those among these."""
        slots, mask = self.state.bound_pods.slots, np.zeros_like(self.general.evictable)
        mask[[slots[uid] for uid in uids if uid in slots]] = True
        return mask

    def _requesting_nothing(self) -> Mask:
        """For a claim that requests nothing, the pods that request something: no victims of it."""
        running = self.state.bound_pods
        spared: Mask = np.zeros_like(self.general.evictable)
        rows = [row for row, name in enumerate(self.state.resources.names) if name != "pods"]
        if not any(row in rows for row, _ in self.charge):
            spared |= (running.charge.data[rows] > 0).any(axis=0)
        return spared
