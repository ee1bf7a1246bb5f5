"""The interface of a policy: gates, turns, reclaim and report, each for one question.

Gates: do the quotas let a claim start? Turns: whose claim is tried next? Reclaim: which pods may be
evicted for a claim? Report: what do users see? A default is that of a policy without the feature in
question.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from aliquot.engine.columns import Vector
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.explanation import GateFigure
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.model.summaries import QueueSummary, QuotaSummary
from aliquot.engine.policies.eligible import Eligible, Rights
from aliquot.engine.policies.shields import Shields
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group


class Gates(Protocol):
    """Do the quotas let a claim start? The gates of `policies.gates` have passed before."""

    shields: Shields
    """Which pods that are not preemptible start, and which of them are no victims."""

    @abstractmethod
    def gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Why the quotas do not let the claim start on nodes of this class; None if they do.

        Without a class, the claim's default charge counts.
        """

    def exceeded_row(self, claim: Claim) -> int | None:
        """The resource in which the gate refuses the claim by what all quotas use together.

        None if it does not, or if the policy has no such bound.
        """
        return None

    def idle_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """The gate for a claim above its share when no claim within its share can start."""
        return self.gate(claim, node_class)

    @abstractmethod
    def rights(self, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the quotas before the gates let the claim pass."""

    def other_rights(self, claim: Claim, node_class: str | None) -> Rights | None:
        """Something else that would do as well to come free, if there is such a thing."""
        return None

    @abstractmethod
    def is_owed(self, claim: Claim, besides: Vector = ()) -> bool:
        """Is the claim within its quota's min, runtime or deserved, as the policy has it?

        `besides`: what its quota is to be charged before it, such as for more important claims.
        Holds for claims that are not owed yield to owed ones (see `holds.precedence`).
        """

    @abstractmethod
    def owes_all_held(self, quota: str) -> bool:
        """Is the quota with all that is held in it within its min, runtime or deserved?

        Then all claims that are nominated in it are owed what is held for them.
        """

    @abstractmethod
    def could_start(self, claim: Claim, node_class: str | None) -> bool:
        """Could the quotas let the claim start on nodes of this class once other pods have ended?

        A claim for which they could not gets no reservation there.
        """

    def figures(self, claim: Claim, node_class: str | None) -> Iterable[GateFigure]:
        """What the gate compares, in each resource that it looks at, whether or not it refuses."""
        return ()

    def could_keep_idle(self, claim: Claim) -> bool:
        """Could a claim that starts on idle capacity keep it, rather than be a victim at once?"""
        return True

    def nominated(self, claim: Claim) -> None:
        """The claim was nominated: keep what its gate must grant it when its victims are gone."""
        return

    def refresh(self) -> None:
        """Bring the shares up to date before nominations are looked at."""
        return

    def begin(self) -> Iterable[str]:
        """Begin a cycle; the quotas whose gates may have opened since the last."""
        return ()


class Turns(Protocol):
    """Whose claim is tried next, where groups of claims take turns."""

    def begin(self) -> None:
        """Begin a cycle: turns are by the shares of this moment."""
        return

    @abstractmethod
    def path(self, claim: Claim) -> tuple[Group, ...]:
        """The groups of a claim that take turns with their siblings, the widest first."""

    @abstractmethod
    def turn(self, group: Group, claim: Claim) -> object:
        """The sort key of a group whose first claim is this one: the smallest is tried first."""

    def started(self, claim: Claim) -> None:
        """The claim has started: its groups have had their turn."""
        return

    def withdrawn(self, claim: Claim) -> None:
        """The claim's start was withdrawn: it is tried again after all others."""
        return

    def handed_out(self) -> None:
        """What has started is handed out: no start was withdrawn yet of what follows."""
        return

    def borrows(self, quota: str) -> bool:
        """Does the quota use what claims that are tried later could take back at once?"""
        return False

    def takes_back_from(self, claim: Claim, quotas: Iterable[str]) -> set[str]:
        """Of these other quotas, those from which the claim would at once take back."""
        return set()

    def may_replace(self, claim: Claim, freed: Mapping[int, int]) -> bool:
        """May the claim replace starts of its own quota, which would free so much, by row?"""
        return True


class Reclaim(Protocol):
    """Which pods may be evicted, for a claim or without one."""

    preempts_equals: bool = False
    """May a claim preempt pods of its own quota and priority, where their share is larger?"""

    @abstractmethod
    def eligible_victims(
        self, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """The pods that may be evicted for the claim: ranks of groups, the best rank first."""

    def may_reclaim(self, claim: Claim, row: int) -> bool:
        """May the claim evict pods of other quotas, where it lacks this resource?

        False only if that is so whatever else it lacks, as long as its quota uses no less.
        """
        return True

    def borrowers(self, row: int) -> set[int] | None:
        """The accounts from which claims can reclaim this resource at most; None: any."""
        return None

    def name_no_victims(self, claim: Claim, refusal: Refusal) -> Refusal:
        """The refusal of a claim that found no victims, where the lack of victims is the reason."""
        return refusal

    def explain_no_victims(self, claim: Claim, refusal: Refusal, now: int) -> str:
        """What to add to the refusal's message when the claim found no victims."""
        return ""

    def excess(self, quota: str) -> Rights:
        """What a quota uses above its lowered bounds, other than max (see `lowered_bounds`)."""
        return {}

    def begin(self, now: int) -> None:
        """Begin a cycle: note what will be taken back without a claim."""
        return

    def recycle(self, now: int) -> list[Evict]:
        """Evictions that are not for a claim."""
        return []

    def deadline(self) -> int | None:
        """When something is to be taken back even without an event."""
        return None

    def started_on_idle(self, claim: Claim) -> None:
        """The claim has started on idle capacity."""
        return


class Report(Protocol):
    """The figures of quotas that the policy decides, for tables, JSON and metrics."""

    def refresh(self) -> None:
        """Bring the figures up to date, for questions between two cycles."""
        return

    @abstractmethod
    def complete(self, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Fill in runtime, guaranteed, scaled min."""

    def queues(self, quotas: Iterable[QuotaSummary]) -> list[QueueSummary]:
        """The figures of queues and their namespaces, from those of the quotas; else none."""
        return []


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy for one state: the four parts."""

    gates: Gates
    reclaim: Reclaim
    report: Report
    turns: Turns | None = None
    """None: claims are tried by importance alone."""
