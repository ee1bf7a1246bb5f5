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

    def begin(self) -> None:
        """Totals and weights may have changed."""
        self._drf.refresh()

    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The claim's queues from the top down, its namespace, its job: each takes turns.

        Only pods beyond the core of a running gang count as of a job of their own; all other claims
        of a namespace are ordered together. Claims without a queue are a group of their own.
        """
        if claim.quota is None:
            return (None,)
        ancestry = self._state.tree.ancestry(claim.quota)
        lineage = reversed([("queue", each.name) for each in ancestry])
        namespace = claim.pods[0].namespace
        job = str(claim.gang) if claim.surplus else ""
        return (*lineage, ("namespace", claim.quota, namespace), ("job", job))

    def turn(self, group: Group, claim: Claim) -> object:
        """The smaller share comes first; of equal ones, the one whose last turn is longest ago."""
        state, first = self._state, -claim.priority if self._priority_bands else 0
        match group:
            case None:
                return first, 0, 0, 0
            case ("queue", str(name)):
                quota = state.tree.quotas.get(name)
                if quota is None:  # deleted: its claims are in other groups by now
                    return first, 0, 0, 0
                share = dominant_ratio(self._deserved, state.tree.slots[name])
                return first, -quota.priority, share, self._last_turn.get(group, 0)
            case ("namespace", str(queue), str(namespace)):
                share = self._drf.namespace_turn(queue, namespace)
                return first, share, self._last_turn.get(group, 0)
            case ("job", str(gang)):
                return -claim.priority, bool(gang), self._drf.gang_turn(gang) if gang else 0
        raise AssertionError(group)

    def last_turn(self, group: Group) -> int:
        """When a queue or namespace last had its turn, as a number that grows; 0 for never."""
        return self._last_turn.get(group, 0)

    def started(self, claim: Claim) -> None:
        """The claim's queues and namespace have had their turn."""
        self._turns += 1
        self._last_turn.update(dict.fromkeys(self.path(claim)[:-1], self._turns))
