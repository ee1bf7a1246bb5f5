"""Which running pods, once they have ended, would let a waiting claim start.

The victim search with every running pod as a candidate, whatever protects it from eviction: the
least important, fewest pods that free the room and the right that are missing. Nothing is evicted;
a user may wait for them, or delete them.
"""

from collections.abc import Container, Iterable, Iterator

import numpy as np

from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Mask
from aliquot.engine.policies.interface import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.search import search
from aliquot.engine.trial import Trial


def sets(
    trial: Trial, policy: Policy, claim: Claim, ranks: Iterable[Container[str]]
) -> Iterator[list[str]]:
    """For each group of pods, by uid, the best set of them that would do, if there is one."""
    state, names = trial.state, trial.state.bound_pods.slots.names
    with trial.asking(claim) as only_class:
        rights = policy.gates.rights(claim, only_class)
        for group in ranks:
            mask: Mask = state.bound_pods.node >= 0
            in_group = [uid is not None and uid in group for uid in names]
            mask[: len(names)] &= np.array(in_group, dtype=bool)
            every = Eligible(mask, Reason.PREEMPTED, lambda _: "")
            plan = search(state, claim, rights, [[every]])
            if plan is not None and plan.victims:
                yield [victim.pod.uid for victim in plan.victims]
