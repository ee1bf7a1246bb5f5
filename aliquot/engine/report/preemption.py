"""Why no pod makes way for a claim: which pods run in its way, and what protects them.

A victim search answers with a plan or without one; it does not say why a pod was passed over. Here
the running pods that hold what the claim is short of are parted by the first rule that protects
them, each with how many there are. The claim's own word comes before that, and so do refusals that
no eviction can help against.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.eligible import Mask
from aliquot.engine.policies.interface import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.report.refusals import SETTLED
from aliquot.engine.trial import PREEMPTION_MAY_HELP, Trial

SHARES = {"capacity": "min", "fair": "min", "hierarchy": "runtime", "queues": "deserved share"}
"""What a quota's pods are safe within, by policy."""
_MOST_QUOTAS = 3
"""Quotas that are named, those with the most pods in the way; the rest is counted."""


def why_none(
    trial: Trial,
    policy: Policy,
    claim: Claim,
    refusal: Refusal,
    quotas: Mapping[str, QuotaSummary],
    word: str,
) -> str:
    """Why no pod makes way for a refused claim, in words."""
    if refusal.reason in SETTLED and refusal.reason is not Reason.RESERVED_FOR_OTHERS:
        return f"it waits for something of its own: {refusal.message}"
    if refusal.reason not in (*PREEMPTION_MAY_HELP, Reason.RESERVED_FOR_OTHERS):
        return f"no eviction helps against {refusal.reason}"
    if not any(trial.state.placement.could_hold(ask) for ask in claim.asks):
        return "no node could hold it even if it were empty"
    if not claim.preempts:
        return "its preemptionPolicy is Never"
    found = [
        words
        for part in claim.parts or (claim,)
        for words in _protections(trial, policy, part, refusal, quotas, word)
    ]
    if not found:
        return "no running pod holds what it is short of"
    return "; ".join(dict.fromkeys(found))


def _protections(
    trial: Trial,
    policy: Policy,
    claim: Claim,
    refusal: Refusal,
    quotas: Mapping[str, QuotaSummary],
    word: str,
) -> Iterator[str]:
    """The rules that protect the pods in the way, with how many each protects."""
    state, bound = trial.state, trial.state.bound_pods
    left = _in_the_way(trial, refusal)
    outside = bound.quota == state.tree.slots[OUTSIDE]
    own = bound.quota == state.tree.slots[claim.quota] if claim.quota is not None else outside

    def take(mask: Mask) -> int:
        nonlocal left
        count = int((left & mask).sum())
        left = left & ~mask
        return count

    if number := take(bound.needed):
        make = "makes" if number == 1 else "make"
        yield f"{_pods(number)} of the system never {make} way"
    least = state.knobs.eviction.min_runtime
    if least and (number := take(bound.started > trial.now - least)):
        yield f"{_pods(number)} started less than eviction.minRuntime ago"
    if claim.quota is None and (number := take(~outside)):
        yield f"{_pods(number)} of quotas: none makes way for a pod without a quota"
    elif state.knobs.eviction.quotaless != "lowest" and (number := take(outside & ~own)):
        are = "is" if number == 1 else "are"
        yield f"{_pods(number)} without a quota {are} left alone (eviction.quotaless: protected)"
    if number := take(~policy.gates.shields.exposed()):
        yield f"{_pods(number)} not preemptible"
    if number := take(own & (bound.priority >= claim.priority)):
        whose = f"its own quota {claim.quota}" if claim.quota is not None else "no quota"
        yield f"{_pods(number)} of {whose} with its priority ({claim.priority}) or a higher one"
    if number := take(own):
        yield f"{_pods(number)} of its own quota with a lower priority would not be enough"
    yield from _of_quotas(trial, policy, claim, refusal, quotas, word, left)


def _in_the_way(trial: Trial, refusal: Refusal) -> Mask:
    """The running pods that hold what the claim is short of; all of them where that is unknown."""
    bound, resources = trial.state.bound_pods, trial.state.resources
    running: Mask = bound.node >= 0
    if refusal.resource is None or refusal.resource not in resources.names:
        return running
    row = resources.row(refusal.resource)
    holds: Mask = (bound.charge.data[row] > 0) | (bound.room.data[row] > 0)
    return running & holds[: len(running)]


def _of_quotas(
    trial: Trial,
    policy: Policy,
    claim: Claim,
    refusal: Refusal,
    quotas: Mapping[str, QuotaSummary],
    word: str,
    left: Mask,
) -> Iterator[str]:
    """The pods of other quotas: within their share, or above it and yet out of reach."""
    state = trial.state
    slots, counts = np.unique(state.bound_pods.quota[left], return_counts=True)
    ranked = sorted(zip(slots.tolist(), counts.tolist(), strict=True), key=lambda p: (-p[1], p[0]))
    if refusal.reason is Reason.QUOTA_MAX_EXCEEDED and refusal.quota == claim.quota:
        number = sum(number for _, number in ranked)
        if number:
            use = "uses" if number == 1 else "use"
            yield f"{_pods(number)} of other quotas {use} nothing of its max"
        return
    owed = policy.gates.is_owed(claim)
    for slot, number in ranked[:_MOST_QUOTAS]:
        summary = quotas.get(str(state.tree.slots.names[slot]))
        if summary is not None:
            gives = state.tree.quotas[summary.name].reclaimable
            yield _of_quota(summary, refusal, number, word, owed, gives)
    if len(ranked) > _MOST_QUOTAS:
        yield f"{_pods(sum(n for _, n in ranked[_MOST_QUOTAS:]))} of other quotas likewise"


def _of_quota(
    summary: QuotaSummary, refusal: Refusal, number: int, word: str, owed: bool, gives: bool
) -> str:
    name = refusal.resource or next(iter(summary.used), "")
    share = (summary.min if word == "min" else summary.runtime).get(name, 0)
    used = summary.used.get(name, 0)
    figures = f"{word} {text(name, share)} {name}, used {text(name, used)}"
    if used <= share:
        return f"{_pods(number)} of quota {summary.name} within its {word} ({figures})"
    if not gives:
        return (
            f"{_pods(number)} of queue {summary.name}, which borrows ({figures}) and gives nothing "
            f"back: its `reclaimable` is false"
        )
    rest = "too few of them may go" if owed else f"the pod would itself be above its {word}"
    return f"{_pods(number)} of quota {summary.name}, which borrows ({figures}): {rest}"


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
