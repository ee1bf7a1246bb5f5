"""Who gives back inside a queue: the order of turns, read backwards.

A claim takes from namespaces that have more than its own even once it has started, by their weight;
in its own namespace, or where both have the same, from jobs of lower priority, or that have more
than its own job even then. What a queue has beyond what it deserves does not grow by that.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Limits, Mask, gang_account, namespace_account
from aliquot.engine.policies.queues.claimant import QueueClaimant


class Preempt:
    """The pods of its own queue that could make way for a claim."""

    def __init__(self, plea: QueueClaimant, banded: bool) -> None:
        self._plea = plea
        self._banded = banded
        self._priority = plea.claim.priority
        self._of_all = plea.state.running.priority

    def offers(self) -> Iterator[list[Eligible]]:
        """First from those who have more; then among equals."""
        own = self._plea.may_go & (self._plea.state.running.quota == self._plea.slot)
        if not own.any():
            return
        for ties in (False, True):
            mask, limits = self._unequal(own, ties)
            if mask.any():
                yield [Eligible(mask, Reason.QUEUE_PREEMPTED, self._explain, limits=limits)]

    def _unequal(self, own: Mask, ties: bool) -> tuple[Mask, Limits]:
        """Who has more, and how much of that they can give; with `ties`, those who have as much."""
        limits = Limits()
        lower = own & (self._of_all < self._priority)
        mask: Mask = lower.copy() if self._banded else np.zeros_like(own)
        peers = own & (self._of_all == self._priority) if self._banded else own
        jobs: Mask = np.zeros_like(own)
        for namespace in self._namespaces:
            theirs = peers & self._plea.of(self._plea.state.in_namespace(namespace))
            if namespace == self._plea.namespace:
                jobs |= theirs
                continue
            left = self._can_give(namespace, ties)
            if left is not None and theirs.any():
                row, amount = left
                limits[namespace_account(self._plea.queue, namespace), row] = amount
                if ties:
                    jobs |= theirs
                else:
                    mask |= theirs
        return mask | self._lesser_jobs(jobs, lower, limits), limits

    def _can_give(self, namespace: str, ties: bool) -> tuple[int, int] | None:
        """As long as it has more than ours once the claim has started: of what, how much."""
        dominance = self._plea.dominance
        sums = dominance.of_namespace(self._plea.queue, namespace)
        if dominance.share(sums) == 0:
            return None
        row, total = dominance.dominant(sums)
        level = self._share_after * dominance.weight(namespace) * total
        least = -(-level.numerator // level.denominator) if ties else int(level) + 1
        amount = sums[row] - least
        return (row, amount) if amount > 0 else None

    def _lesser_jobs(self, jobs: Mask, lower: Mask, limits: Limits) -> Mask:
        """Of these: lower priority; or the same, of a gang that has more than ours even then."""
        state, dominance = self._plea.state, self._plea.dominance
        equals = jobs & (self._of_all == self._priority)
        mask: Mask = jobs & lower
        uids = (str(state.running.slots.names[slot]) for slot in np.flatnonzero(equals))
        gangs = {state.pods[uid].gang for uid in uids} - {None}
        for gang in sorted(map(str, gangs)):
            sums = dominance.of_gang(gang)
            if dominance.share(sums) == 0:
                continue
            row, total = dominance.dominant(sums)
            amount = sums[row] - int(self._job_share_after * total) - 1
            if amount > 0:
                limits[gang_account(gang), row] = amount
                mask |= equals & self._plea.of(state.gangs.members[gang])
        return mask

    @cached_property
    def _namespaces(self) -> list[str]:
        """Those who have something in the claim's queue."""
        return self._plea.dominance.namespaces(self._plea.queue)

    @cached_property
    def _share_after(self) -> Fraction:
        """The share of the claim's namespace by its weight, once it has started."""
        dominance, namespace = self._plea.dominance, self._plea.namespace
        sums = dominance.of_namespace(self._plea.queue, namespace)
        after = dominance.share(sums, dict(self._plea.charge))
        return after / dominance.weight(namespace)

    @cached_property
    def _job_share_after(self) -> Fraction:
        """The share of the claim's job, once it has started."""
        sums = self._plea.dominance.of_gang(self._plea.claim.gang or "")
        return self._plea.dominance.share(sums, dict(self._plea.charge))

    def _explain(self, victim: Pod) -> str:
        """Whose share is larger, or whose priority lower."""
        claimant, queue, dominance = (
            self._plea.claim.pods[0],
            self._plea.queue,
            self._plea.dominance,
        )
        inside = victim.namespace == claimant.namespace
        if (inside or self._banded) and victim.priority < self._priority:
            return self._plea.asking.explain(victim)
        if inside:
            ours = claimant.gang or claimant.path
            return (
                f"queue {queue}: job {ours} has less than {victim.gang}, even once it has started"
            )
        sums = dominance.of_namespace(queue, victim.namespace)
        theirs = dominance.share(sums) / dominance.weight(victim.namespace)
        return (
            f"queue {queue}: namespace {claimant.namespace} starts {claimant.path} with "
            f"{_percent(self._share_after)} of the cluster by its weight, "
            f"namespace {victim.namespace} has {_percent(theirs)}"
        )


def _percent(share: Fraction) -> str:
    return f"{float(share):.1%}"
