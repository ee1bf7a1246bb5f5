"""Aliquot's engine, with a note of what it decides, and which nodes it refuses before that."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aliquot.engine import Bind, Decision, Engine


@dataclass(slots=True)
class Notes:
    """What the engine decided, in order."""

    waiting: Callable[[], Iterable[str]]
    """The uids of the pods that wait for it."""
    binds: list[tuple[str, str]] = field(default_factory=list)
    """Each pod that it bound, by uid, and the node."""
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    """The nodes that refused a pod just before it was bound: of the first pod of each cycle."""
    failures: list[str] = field(default_factory=list)
    """Errors of the engine: it is made anew after one, and nobody else hears of it."""


def witness(notes: Notes) -> type[Engine]:
    """An engine that takes these notes."""

    class Witness(Engine):
        def cycle(self, now: int = 0, bounded: bool = False) -> list[Decision]:
            asked = [uid for uid in notes.waiting() if self.waiting_pod(uid) is not None]
            before = {uid: self.node_refusals(uid) for uid in asked}
            try:
                decisions = super().cycle(now, bounded)
            except Exception as error:
                notes.failures.append(repr(error))
                raise
            binds = [each for each in decisions if isinstance(each, Bind)]
            for each in binds[:1]:
                if each.pod.uid in before:
                    notes.refused[each.pod.uid] = before[each.pod.uid]
            notes.binds += [(each.pod.uid, each.node) for each in binds]
            return decisions

    return Witness
