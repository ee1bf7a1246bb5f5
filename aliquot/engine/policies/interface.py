"""What a policy decides, and what it need not decide: the defaults here do nothing."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.importance import IMPORTANCE, Order
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.report.summary import QueueSummary, QuotaSummary
from aliquot.engine.state import State


class Policy(ABC):
    """How gates, order and reclaim are decided."""

    order: Order = IMPORTANCE
    """In which a quota's pods are counted as in-quota, and asked to give back."""
    protected_namespaces: frozenset[str] = frozenset()
    """Namespaces whose pods are never asked to go."""
    preempts_equals = False
    """Do pods of the same quota and priority give, where they have more?"""

    @abstractmethod
    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """May the claim start, as far as quotas are concerned, on nodes of this class?

        `max` has been checked before. None as class: what holds before any node is considered.
        """

    @abstractmethod
    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the quotas before the gates let the claim pass."""

    @abstractmethod
    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Who may give back for the claim: ranks of offers, the best first."""

    @abstractmethod
    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is the claim within what is guaranteed to it, so that no hold stands in its way?"""

    @abstractmethod
    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Add to the quotas' figures what this policy says of them."""

    def could_start(self, state: State, claim: Claim) -> bool:
        """Would the quotas let it start, if those who use what it needs ended by themselves?"""
        if claim.quota is None:
            return True
        return all(
            amount <= state.tree.max.get(row, slot)
            for slot in state.tree.lineage(claim.quota)
            for row, amount in claim.charge(None)
        )

    def nominated(self, state: State, claim: Claim) -> None:
        """Others go for the claim, or leave anyway: what it was promised is to be kept."""
        return

    def queues(self, state: State) -> list[QueueSummary]:
        """How queues stand, where this is a policy of queues."""
        return []

    def excess(self, state: State, quota: str) -> Rights:
        """What a quota uses, max aside, that it may not use any more: its bounds were lowered."""
        return {}

    def explain_no_victims(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """What else there is to say to a claim that found nobody to make way."""
        return ""

    def begin(self, state: State, now: int) -> Iterable[str]:
        """A cycle begins: bring figures up to date. The quotas whose gates may have opened."""
        return ()

    def deadline(self, state: State) -> int | None:
        """When a cycle is due for this policy's sake, even if nothing happens before."""
        return None

    def path(self, state: State, claim: Claim) -> tuple[Group, ...]:
        """The groups that take turns in which a claim is, the widest first; none by default."""
        return ()

    def turn(self, state: State, group: Group, claim: Claim) -> object:
        """When it is the turn of a group with this claim as its first one: less is sooner."""
        return None

    def started(self, state: State, claim: Claim) -> None:
        """The claim has started: its groups have had their turn."""
        return

    def recycle(self, state: State, now: int) -> list[Evict]:
        """Who goes without being asked by a claim."""
        return []

    def idle_gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """May a claim that the gates refuse use what would otherwise be idle?"""
        return self.gate(state, claim, node_class)

    def could_keep_idle(self, state: State, claim: Claim) -> bool:
        """Would a claim that uses what is idle not have to give it back at once?"""
        return True

    def started_on_idle(self, claim: Claim) -> None:
        """The claim has started on what would otherwise be idle."""
        raise NotImplementedError("only a policy whose `beyond` lets claims start is told so")
