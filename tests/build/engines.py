"""What tests read of an engine and its decisions."""

from collections.abc import Iterable

from aliquot.engine import Decision, Engine, Nominate
from aliquot.engine.state import State


def books(engine: Engine) -> State:
    """The books of an engine: only tests that check them look inside."""
    return engine._state


def nominated(decisions: Iterable[Decision]) -> dict[str, str]:
    """The node that is nominated for each pod, by the pod's name."""
    return {
        pod.name: node
        for each in decisions
        if isinstance(each, Nominate)
        for pod, node in zip(each.pods, each.nodes, strict=True)
    }
