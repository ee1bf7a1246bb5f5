"""A dry run: decisions are logged, and nothing is written.

A line for each pod: what the executor would write for it, in the order in which it would.
"""

from collections.abc import Iterable, Iterator

import structlog

from aliquot.engine import Bind, Decision, Evict, Nominate, Pod, Wait
from aliquot.kube.observe.metrics import DECISION_WORDS

_log = structlog.get_logger()


def log_decisions(decisions: Iterable[Decision]) -> None:
    """Log what would be written; the victims of a preemption before its nominations."""
    for decision in decisions:
        if isinstance(decision, Nominate):
            log_decisions(decision.victims)
        word = DECISION_WORDS[type(decision)]
        for pod, details in _details(decision):
            _log.info("would decide", decision=word, pod=pod.path, **details)


def _details(decision: Decision) -> Iterator[tuple[Pod, dict[str, object]]]:
    """The pods of a decision, and what is logged of each."""
    match decision:
        case Bind(pod, node, _, volumes):
            chosen = {each.claim: each.volume or "provisioned" for each in volumes}
            yield pod, {"node": node, **({"volumes": chosen} if chosen else {})}
        case Wait(pod, refusal):
            yield pod, {"reason": refusal.reason.value, "message": refusal.message}
        case Evict(pod, _, reason, message):
            yield pod, {"reason": reason.value, "message": message}
        case Nominate(pods, nodes):
            for pod, node in zip(pods, nodes, strict=True):
                yield pod, {"node": node}
