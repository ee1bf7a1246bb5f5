"""Turns of queues: by used / deserved; in a queue, namespaces by dominant share / weight.

In a namespace, jobs come by priority, gang readiness and share. The knob `priorityBands` puts
priority before fairness. Of equals, the one whose last turn is longest ago comes first.
"""

from aliquot.engine.policies.interface import Turns
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.shares import CurrentShares, dominant_ratio
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State


class QueueTurns(Turns):
    """Queues, namespaces and jobs take turns; each is ranked when it had the last turn."""

    def __init__(
        self,
        state: State,
        shares: CurrentShares[Deserved],
        drf: DominantShares,
        priority_bands: bool,
    ) -> None:
        self._state = state
        self._deserved = shares.book
        self._drf = drf
        self._priority_bands = priority_bands
        self._last_turn: dict[Group, int] = {}
        """When a queue or namespace last had its turn."""
        self._turns = 0
        self._queues: dict[str, tuple[Group, ...]] = {}
        """The groups of each queue and those above it, from the top down, while the tree is one."""
        self._tree = -1

    def begin(self) -> None:
        """Totals and weights may have changed."""
        self._drf.refresh()

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's queues from the top down, its namespace, its job: each takes turns.

        Only pods beyond the core of a running gang count as of a job of their own; all other claims
        of a namespace are ordered together. Claims without a queue are a group of their own.
        """
        quota = claim.quota
        if quota is None:
            return (None,)
        job = str(claim.gang) if claim.surplus else ""
        namespace = claim.pods[0].namespace
        return (*self._lineage(quota), ("namespace", quota, namespace), ("job", job))

    def _lineage(self, quota: str) -> tuple[Group, ...]:
        """The groups of a queue and of those above it, from the top down."""
        tree = self._state.tree
        if self._tree != tree.version:
            self._queues.clear()
            self._tree = tree.version
        found = self._queues.get(quota)
        if found is None:
            above = [("queue", each.name) for each in tree.ancestry(quota)]
            found = self._queues[quota] = tuple(reversed(above))
        return found

    def turn(self, group: Group, claim: Claim) -> object:
        """The smaller share comes first; of equal ones, the one whose last turn is longest ago."""
        first = -claim.priority if self._priority_bands else 0
        if group is None:
            return first, 0, 0, 0
        assert isinstance(group, tuple)
        if group[0] == "namespace":
            _, queue, namespace = group
            share = self._drf.namespace_turn(queue, namespace)
            return first, share, self._last_turn.get(group, 0)
        _, name = group
        if group[0] == "job":
            return -claim.priority, bool(name), self._drf.gang_turn(name) if name else 0
        quota = self._state.tree.quotas.get(name)
        if quota is None:  # deleted: its claims are in other groups by now
            return first, 0, 0, 0
        share = dominant_ratio(self._deserved, self._state.tree.slots[name])
        return first, -quota.priority, share, self._last_turn.get(group, 0)

    def last_turn(self, group: Group) -> int:
        """When a queue or namespace last had its turn, as a number that grows; 0 for never."""
        return self._last_turn.get(group, 0)

    def started(self, claim: Claim) -> None:
        """The claim's queues and namespace have had their turn."""
        self._turns += 1
        for group in self.path(claim)[:-1]:
            self._last_turn[group] = self._turns
