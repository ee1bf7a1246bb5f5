"""The canonical text of events, decisions and answers: the same for the same content.

A field with its default value is left out, and sets are sorted, so that the text depends neither on
Python's hash seed nor on fields that are added to a value. What a refusal waits for (`watch`) is no
part of a decision and is left out. A preemption is written as its evictions, then a line for each
nominated pod, whether the decisions come as one (`Nominate` with `victims`) or one by one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

from aliquot.engine import Bind, Decision, Evict, Refusal, Wait

_UNWRITTEN = {"watch"}


def plain(value: Any) -> str:
    """One line for a value, whatever it is made of."""
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_fields(value))})"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{plain(k)}: {plain(value[k])}" for k in sorted(value, key=str)) + "}"
        )
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(plain, value))) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(plain, value)) + "]"
    return str(value)


def _fields(value: Any) -> Iterator[str]:
    for field in fields(value):
        if not field.init or field.name in _UNWRITTEN:
            continue
        content = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if default is MISSING or content != default:
            yield f"{field.name}={plain(content)}"


class Nomination:
    """A node nominated for a pod, in either form of the decision."""

    def __init__(self, pod: Any, node: str) -> None:
        self.pod, self.node = pod, node


def flat(decisions: Iterable[Decision]) -> Iterator[Bind | Wait | Evict | Nomination]:
    """The decisions one by one: evictions first, then what is nominated."""
    for decision in decisions:
        if isinstance(decision, Bind | Wait | Evict):
            yield decision
            continue
        plan: Any = decision
        yield from getattr(plan, "victims", ())
        pods = plan.pods if hasattr(plan, "pods") else (plan.pod,)
        nodes = plan.nodes if hasattr(plan, "nodes") else (plan.node,)
        for pod, node in zip(pods, nodes, strict=True):
            yield Nomination(pod, node)


def refusal_text(refusal: Refusal | None) -> str:
    """The reason, the quota and resource, and the message."""
    if refusal is None:
        return "-"
    return f"{refusal.reason.value} [{refusal.quota} {refusal.resource}] {refusal.message}"


def decision_text(decision: Bind | Wait | Evict | Nomination) -> str:
    """One line for one decision."""
    pod = f"{decision.pod.path} {decision.pod.uid}"
    match decision:
        case Bind(_, node, devices):
            return " ".join(("bind", pod, node, *devices))
        case Wait(_, refusal):
            return f"wait {pod} {refusal_text(refusal)}"
        case Evict(_, claimant, reason, message):
            return f"evict {pod} for {claimant and claimant.uid} {reason.value} {message}"
        case _:
            return f"nominate {pod} {decision.node}"
