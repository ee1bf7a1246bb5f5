"""Preemption inside a queue: the order of turns, read backwards.

A claim's victims are pods of namespaces whose share over weight is larger than its own namespace's
even after it has started; in its own namespace, or one with an equal share, pods of jobs of lower
priority, or of jobs whose share is larger than its own job's even then. The queue's use above
deserved does not grow.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.ratio import percent
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Limits, Mask, gang_account, namespace_account
from aliquot.engine.policies.queues.claimant import QueueClaimant


class QueuePreemption:
    """The eligible victims of a claim in its own queue."""

    def __init__(self, claimant: QueueClaimant, priority_bands: bool) -> None:
        self._claimant = claimant
        self._priority_bands = priority_bands
        self._priority = claimant.claim.priority
        self._priorities = claimant.state.bound_pods.priority

    def eligible_victims(self) -> Iterator[list[Eligible]]:
        """First pods of namespaces with a larger share; then among equal shares, by job."""
        own = self._claimant.evictable & (
            self._claimant.state.bound_pods.quota == self._claimant.slot
        )
        if not own.any():
            return
        for ties in (False, True):
            mask, limits = self._larger_shares(own, ties)
            if mask.any():
                order = self._claimant.order.of(mask)
                reason = Reason.QUEUE_PREEMPTED
                yield [Eligible(mask, reason, self._explain, limits=limits, order=order)]

    def _larger_shares(self, own: Mask, ties: bool) -> tuple[Mask, Limits]:
        """The pods of namespaces with a larger share, and how much those can lose.

        With `ties`, of namespaces with an equal share.
        """
        limits = Limits()
        lower = own & (self._priorities < self._priority)
        mask: Mask = lower.copy() if self._priority_bands else np.zeros_like(own)
        peers = own & (self._priorities == self._priority) if self._priority_bands else own
        jobs: Mask = np.zeros_like(own)
        for namespace in self._namespaces:
            pods = peers & self._claimant.of(self._claimant.state.in_namespace(namespace))
            if namespace == self._claimant.namespace:
                jobs |= pods
                continue
            left = self._can_lose(namespace, ties)
            if left is not None and pods.any():
                row, amount = left
                limits[namespace_account(self._claimant.queue, namespace), row] = amount
                if ties:
                    jobs |= pods
                else:
                    mask |= pods
        return mask | self._lower_jobs(jobs, lower, limits), limits

    def _can_lose(self, namespace: str, ties: bool) -> tuple[int, int] | None:
        """The row and amount that a namespace can lose while its share over weight stays larger.

        Larger than that of the claim's namespace after it has started; with `ties`, or equal. None
        if it can lose nothing.
        """
        drf = self._claimant.drf
        sums = drf.of_namespace(self._claimant.queue, namespace)
        if drf.share(sums) == 0:
            return None
        row, total = drf.dominant(sums)
        level = self._share_after * drf.weight(namespace) * total
        least = -(-level.numerator // level.denominator) if ties else int(level) + 1
        amount = sums[row] - least
        return (row, amount) if amount > 0 else None

    def _lower_jobs(self, jobs: Mask, lower: Mask, limits: Limits) -> Mask:
        """Of these pods, those of lower priority, or of equal priority in a gang of larger share.

        Larger than the share of the claim's own job even after the claim has started.
        """
        state, drf = self._claimant.state, self._claimant.drf
        equals = jobs & (self._priorities == self._priority)
        mask: Mask = jobs & lower
        uids = (str(state.bound_pods.slots.names[slot]) for slot in np.flatnonzero(equals))
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
        """The namespaces that have something in the claim's queue."""
        return self._claimant.drf.namespaces(self._claimant.queue)

    @cached_property
    def _share_after(self) -> Fraction:
        """The share over weight of the claim's namespace after the claim has started."""
        drf, namespace = self._claimant.drf, self._claimant.namespace
        sums = drf.of_namespace(self._claimant.queue, namespace)
        after = drf.share(sums, dict(self._claimant.charge))
        return after / drf.weight(namespace)

    @cached_property
    def _job_share_after(self) -> Fraction:
        """The share of the claim's job after the claim has started."""
        sums = self._claimant.drf.of_gang(self._claimant.claim.gang or "")
        return self._claimant.drf.share(sums, dict(self._claimant.charge))

    def _explain(self, victim: Pod) -> str:
        """The message of a preemption: by priority, by job, or by the namespaces' shares."""
        first, queue, drf = (
            self._claimant.claim.pods[0],
            self._claimant.queue,
            self._claimant.drf,
        )
        inside = victim.namespace == first.namespace
        if (inside or self._priority_bands) and victim.priority < self._priority:
            return self._claimant.general.explain(victim)
        if inside:
            job = first.gang or first.path
            return f"queue {queue}: job {job} has less than {victim.gang}, even once it has started"
        sums = drf.of_namespace(queue, victim.namespace)
        larger = drf.share(sums) / drf.weight(victim.namespace)
        return (
            f"queue {queue}: namespace {first.namespace} starts {first.path} with "
            f"{percent(self._share_after)}% of the cluster by its weight, "
            f"namespace {victim.namespace} has {percent(larger)}%"
        )
