"""Who gives back inside a queue: the order of turns, read backwards.

A claim takes from namespaces that have more than its own even once it has started, by their weight;
in its own namespace, or where both have the same, from jobs of lower priority, or that have more
than its own job even then. What a queue has beyond what it deserves does not grow by that.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from aliquot.engine.model.objects import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Limits, Mask, gang_account, namespace_account
from aliquot.engine.policies.queues.claimant import QueueClaimant


class QueuePreemption:
    """The pods of its own queue that could make way for a claim."""

    def __init__(self, claimant: QueueClaimant, priority_bands: bool) -> None:
        self._claimant = claimant
        self._priority_bands = priority_bands
        self._priority = claimant.claim.priority
        self._of_all = claimant.state.running.priority

    def eligible_victims(self) -> Iterator[list[Eligible]]:
        """First from those who have more; then among equals."""
        own = self._claimant.evictable & (self._claimant.state.running.quota == self._claimant.slot)
        if not own.any():
            return
        for ties in (False, True):
            mask, limits = self._unequal(own, ties)
            if mask.any():
                yield [Eligible(mask, Reason.QUEUE_PREEMPTED, self._explain, limits=limits)]

    def _unequal(self, own: Mask, ties: bool) -> tuple[Mask, Limits]:
        """Who has more, and rules much of that they can give; with `ties`, those who have as much."""
        limits = Limits()
        lower = own & (self._of_all < self._priority)
        mask: Mask = lower.copy() if self._priority_bands else np.zeros_like(own)
        peers = own & (self._of_all == self._priority) if self._priority_bands else own
        jobs: Mask = np.zeros_like(own)
        for namespace in self._namespaces:
            theirs = peers & self._claimant.of(self._claimant.state.in_namespace(namespace))
            if namespace == self._claimant.namespace:
                jobs |= theirs
                continue
            left = self._can_give(namespace, ties)
            if left is not None and theirs.any():
                row, amount = left
                limits[namespace_account(self._claimant.queue, namespace), row] = amount
                if ties:
                    jobs |= theirs
                else:
                    mask |= theirs
        return mask | self._lesser_jobs(jobs, lower, limits), limits

    def _can_give(self, namespace: str, ties: bool) -> tuple[int, int] | None:
        """As long as it has more than ours once the claim has started: of what, rules much."""
        drf = self._claimant.drf
        sums = drf.of_namespace(self._claimant.queue, namespace)
        if drf.share(sums) == 0:
            return None
        row, total = drf.dominant(sums)
        level = self._share_after * drf.weight(namespace) * total
        least = -(-level.numerator // level.denominator) if ties else int(level) + 1
        amount = sums[row] - least
        return (row, amount) if amount > 0 else None

    def _lesser_jobs(self, jobs: Mask, lower: Mask, limits: Limits) -> Mask:
        """Of these: lower priority; or the same, of a gang that has more than ours even then."""
        state, drf = self._claimant.state, self._claimant.drf
        equals = jobs & (self._of_all == self._priority)
        mask: Mask = jobs & lower
        uids = (str(state.running.slots.names[slot]) for slot in np.flatnonzero(equals))
        gangs = {state.pods[uid].gang for uid in uids} - {None}
        for gang in sorted(map(str, gangs)):
            sums = drf.of_gang(gang)
            if drf.share(sums) == 0:
                continue
            row, total = drf.dominant(sums)
            amount = sums[row] - int(self._job_share_after * total) - 1
            if amount > 0:
                limits[gang_account(gang), row] = amount
                mask |= equals & self._claimant.of(state.gangs.members[gang])
        return mask

    @cached_property
    def _namespaces(self) -> list[str]:
        """Those who have something in the claim's queue."""
        return self._claimant.drf.namespaces(self._claimant.queue)

    @cached_property
    def _share_after(self) -> Fraction:
        """The share of the claim's namespace by its weight, once it has started."""
        drf, namespace = self._claimant.drf, self._claimant.namespace
        sums = drf.of_namespace(self._claimant.queue, namespace)
        after = drf.share(sums, dict(self._claimant.charge))
        return after / drf.weight(namespace)

    @cached_property
    def _job_share_after(self) -> Fraction:
        """The share of the claim's job, once it has started."""
        sums = self._claimant.drf.of_gang(self._claimant.claim.gang or "")
        return self._claimant.drf.share(sums, dict(self._claimant.charge))

    def _explain(self, victim: Pod) -> str:
        """Whose share is larger, or whose priority lower."""
        claimant, queue, drf = (
            self._claimant.claim.pods[0],
            self._claimant.queue,
            self._claimant.drf,
        )
        inside = victim.namespace == claimant.namespace
        if (inside or self._priority_bands) and victim.priority < self._priority:
            return self._claimant.general.explain(victim)
        if inside:
            ours = claimant.gang or claimant.path
            return (
                f"queue {queue}: job {ours} has less than {victim.gang}, even once it has started"
            )
        sums = drf.of_namespace(queue, victim.namespace)
        theirs = drf.share(sums) / drf.weight(victim.namespace)
        return (
            f"queue {queue}: namespace {claimant.namespace} starts {claimant.path} with "
            f"{_percent(self._share_after)} of the cluster by its weight, "
            f"namespace {victim.namespace} has {_percent(theirs)}"
        )


def _percent(share: Fraction) -> str:
    return f"{float(share):.1%}"
