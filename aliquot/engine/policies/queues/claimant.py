"""A claimant: a claim in a queue that asks others to make way, and what the rules look at.

Pods that ask for nothing ask nobody who does.
"""

from collections.abc import Iterable

import numpy as np

from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import Mask
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares


class QueueClaimant:
    """Who asks, for what, and who could be asked."""

    def __init__(
        self,
        claimant: reclaim_rules.Claimant,
        node_class: str | None,
        deserved: Deserved,
        drf: DominantShares,
    ) -> None:
        self.general = claimant
        self.state = claimant.state
        self.claim = claimant.claim
        self.queue = claimant.quota
        self.slot = claimant.slot
        self.deserved = deserved
        self.drf = drf
        self.lineage = claimant.state.tree.lineage(claimant.quota)
        """Its queue, and those above it."""
        self.charge = tuple(
            (row, amount)
            for row, amount in claimant.claim.charge(node_class)
            if row in deserved.rows
        )
        self.evictable = claimant.evictable & ~self._spared()

    @property
    def asked_for(self) -> set[int]:
        """The resources that it asks for; a place for a pod is one only to those without others."""
        rows = {row for row, _ in self.charge}
        return rows - {row for row in rows if self.state.resources.names[row] == "pods"} or rows

    @property
    def namespace(self) -> str:
        """Where it is from."""
        return self.claim.pods[0].namespace

    def of(self, uids: Iterable[str]) -> Mask:
        """A mask of these pods, as far as they run."""
        slots, mask = self.state.running.slots, np.zeros_like(self.general.evictable)
        mask[[slots[uid] for uid in uids if uid in slots]] = True
        return mask

    def _spared(self) -> Mask:
        running = self.state.running
        spared: Mask = np.zeros_like(self.general.evictable)
        rows = [row for row, name in enumerate(self.state.resources.names) if name != "pods"]
        if not any(row in rows for row, _ in self.charge):
            spared |= (running.charge.data[rows] > 0).any(axis=0)
        return spared
