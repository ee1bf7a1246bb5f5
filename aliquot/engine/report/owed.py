"""What quotas are owed and do not have: their waiting claims within min, runtime or deserved.

Which claims are owed, the policy's gates say, as for holds and victims; the claims of a quota are
added up, the most important first, as far as all of them together are owed. Claims that would wait
on an empty cluster, too, are left out: their users wait for themselves, not for others.
"""

from collections.abc import Collection, Mapping

from aliquot.engine.columns import Vector
from aliquot.engine.model.reasons import Reason
from aliquot.engine.model.summaries import Figures
from aliquot.engine.policies.interface import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

OWN_CAUSES = frozenset(
    {
        Reason.SCHEDULING_GATED,
        Reason.TERMINATING,
        Reason.NOT_SUPPORTED,
        Reason.GANG_INCOMPLETE,
        Reason.PARENT_QUOTA,
        Reason.QUOTA_NOT_ALLOWED,
        Reason.QUEUE_MISSING,
        Reason.QUEUE_CLOSED,
        Reason.GPU_QUOTA_EXCEEDED,
        Reason.VOLUME_MISSING,
        Reason.WAITING_FOR_VOLUME,
    }
)
"""Refusals that no pod of another quota has a part in, and that no node would mend."""


def owed(state: State, policy: Policy, named: Mapping[str, Collection[str]]) -> dict[str, Figures]:
    """What is owed to the waiting claims of each quota; quotas that are owed nothing are absent.

    `named`: the resources in which anything is guaranteed to a quota.
    """
    sums: dict[str, dict[int, int]] = {}
    found = [each for each in state.waiting.verdicts() if not _waits_for_itself(each[0], each[2])]
    for head, number, _ in sorted(found, key=lambda each: each[0].key):
        if head.parts:
            if policy.gates.is_owed(head):
                for part in head.parts:
                    _add(sums, part, 1)
        elif head.quota is not None and named.get(head.quota):
            _add(sums, head, _owed_of(policy, head, number, sums.get(head.quota, {})))
    names = state.resources.names
    figures = {
        quota: {names[row]: n for row, n in amounts.items() if n and names[row] in named[quota]}
        for quota, amounts in sums.items()
        if quota in named
    }
    return {quota: amounts for quota, amounts in figures.items() if amounts}


def _waits_for_itself(claim: Claim, reason: Reason | None) -> bool:
    return reason in OWN_CAUSES or claim.missing > 0 or any(pod.blocked for pod in claim.pods)


def _owed_of(policy: Policy, head: Claim, number: int, before: dict[int, int]) -> int:
    """How many claims like this one are owed, with `before` charged to their quota first."""
    charge = head.charge(None)

    def is_owed(last: int) -> bool:
        return policy.gates.is_owed(head, _more(before, charge, last - 1))

    if not is_owed(1):
        return 0
    least, most = 1, number
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if is_owed(middle) else (least, middle - 1)
    return least


def _more(before: dict[int, int], charge: Vector, times: int) -> Vector:
    sums = dict(before)
    for row, amount in charge:
        sums[row] = sums.get(row, 0) + times * amount
    return tuple(sums.items())


def _add(sums: dict[str, dict[int, int]], claim: Claim, times: int) -> None:
    if claim.quota is not None:
        known = sums.setdefault(claim.quota, {})
        known.update(_more(known, claim.charge(None), times))
