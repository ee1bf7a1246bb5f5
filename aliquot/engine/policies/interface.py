"""The interface of a policy. The defaults are those of a policy without the feature in question."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.importance import IMPORTANCE, Order
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.model.summaries import QueueSummary, QuotaSummary
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State


class Policy(ABC):
    """How gates, order and reclaim are decided."""

    order: Order = IMPORTANCE
    """The order of importance in which a quota's pods count as in-quota or over-quota."""
    protected_namespaces: frozenset[str] = frozenset()
    """Namespaces whose pods are never evicted."""
    preempts_equals = False
    """May a claim preempt pods of its own quota and priority, where their share is larger?"""

    @abstractmethod
    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Why the quotas do not let the claim start on nodes of this class; None if they do.

        The gates of `policies.gates` have passed. Without a class, the claim's default charge
        counts.
        """

    @abstractmethod
    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the quotas before the gates let the claim pass."""

    @abstractmethod
    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """The pods that may be evicted for the claim: ranks of groups, the best rank first."""

    @abstractmethod
    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is the claim within its quota's min, runtime or deserved, as the policy has it?

        An owed claim displaces nominations of less important claims of its quota.
        """

    @abstractmethod
    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in the figures that the policy decides: runtime, guaranteed, scaled min."""

    def could_start(self, state: State, claim: Claim) -> bool:
        """Could the quotas let the claim start once other pods have ended?

        A claim for which they could not gets no reservation.
        """
        if claim.quota is None:
            return True
        return all(
            amount <= state.tree.max.get(row, slot)
            for slot in state.tree.lineage(claim.quota)
            for row, amount in claim.charge(None)
        )

    def nominated(self, state: State, claim: Claim) -> None:
        """The claim was nominated: keep what its gate must grant it when its victims are gone."""
        return

    def queues(self, state: State, quotas: Iterable[QuotaSummary]) -> list[QueueSummary]:
        """The figures of queues and their namespaces, under a policy of queues."""
        return []

    def excess(self, state: State, quota: str) -> Rights:
        """What a quota uses above its lowered bounds, other than max (see `lowered_bounds`)."""
        return {}

    def explain_no_victims(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """What to add to the refusal's message when the claim found no victims."""
        return ""

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Refresh the policy's figures for a new cycle; the quotas whose gates may have opened."""
        return ()

    def deadline(self, state: State) -> int | None:
        """When the policy needs a cycle even without an event."""
        return None

    def path(self, state: State, claim: Claim) -> tuple[Group, ...]:
        """The groups of a claim that take turns with their siblings, the widest first."""
        return ()

    def turn(self, state: State, group: Group, claim: Claim) -> object:
        """The sort key of a group whose first claim is this one: the smallest is tried first."""
        return None

    def started(self, state: State, claim: Claim) -> None:
        """The claim has started: its groups have had their turn."""
        return

    def recycle(self, state: State, now: int) -> list[Evict]:
        """Evictions that are not for a claim."""
        return []

    def idle_gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """The gate for a claim above its share when no claim within its share can start."""
        return self.gate(state, claim, node_class)

    def could_keep_idle(self, state: State, claim: Claim) -> bool:
        """Could a claim that starts on idle capacity keep it, rather than be a victim at once?"""
        return True

    def started_on_idle(self, claim: Claim) -> None:
        """The claim has started on idle capacity."""
        raise NotImplementedError("only for a policy whose `idle_gate` lets claims start")
